//! The combinations of host names and logins of machines.

use super::*;

const LOGIN: &str = "daemon: {authUrl: 'http://l/auth', signInUrl: 'https://d/login/machine'}";

/// The faults of a configuration with these keys of the instance loop, below the key that is to be corrected.
fn of_instance(keys: &str) -> Vec<String> {
    let text = format!("{HEAD}controllers: {{instance: {{{keys}}}}}\n");
    match Config::parse("f.yaml", &text) {
        Ok(_) => Vec::new(),
        Err(error) => error.to_string().lines().map(str::to_owned).collect(),
    }
}

#[test]
fn the_daemons_login_needs_a_host_for_each_machine() {
    let needs = "; expected urls: host, because the login sets a cookie for the host of each machine";
    for key in ["mode", "exams"] {
        let access = format!("access: {{{key}: daemon, {LOGIN}}}");
        assert_eq!(of_instance(&format!("urls: host, {access}")), [""; 0], "{key}");
        let expected = format!(
            "f.yaml:3: controllers.instance.access.{key}: access.{key} is daemon and urls is path{needs}"
        );
        assert_eq!(of_instance(&access), [expected]);
        let missing = of_instance(&format!("urls: host, access: {{{key}: daemon}}"));
        let begin = format!("f.yaml:3: controllers.instance.access.{key}: access.{key} is daemon and ");
        assert_eq!(missing.len(), 2, "{missing:?}");
        assert!(missing[0].starts_with(&format!("{begin}authUrl is empty; expected the URL")), "{missing:?}");
        assert!(
            missing[1].starts_with(&format!("{begin}signInUrl is empty; expected the URL")),
            "{missing:?}"
        );
    }
}

#[test]
fn a_proxy_for_each_instance_needs_the_common_host() {
    let proxy = "oauth2Proxy: {issuerUrl: 'https://a', clientId: c, clientSecretFile: /f}";
    let access = format!("access: {{mode: perInstance, {proxy}}}");
    assert_eq!(of_instance(&access), [""; 0]);
    let expected = "f.yaml:3: controllers.instance.access.mode: access.mode is perInstance and urls is host; expected \
                    access.mode: daemon, which admits the same users without a proxy for each Instance, or urls: path";
    assert_eq!(of_instance(&format!("urls: host, {access}")), [expected]);
}

#[test]
fn the_old_behaviour_is_the_default() {
    let instance = Config::default().controllers.instance;
    assert_eq!((instance.urls, instance.access.exams), (Urls::Path, ExamAccess::None));
    assert_eq!(instance.access.mode, AccessMode::Shared);
}

#[test]
fn the_login_needs_its_files_and_the_page_of_the_dashboard() {
    let mut found = faults_below("controllers: {login: {enabled: true, listen: \"\"}}\n");
    found.sort();
    let enabled = "f.yaml:3: controllers.login.enabled: login is enabled and";
    let expected = [
        format!("{enabled} hostKeyFile is empty; expected the file with the key of the Secret crownlabs-machine-hosts"),
        format!(
            "{enabled} instance.access.daemon.signInUrl is empty; expected the URL of the dashboard's page /login/machine"
        ),
        format!("{enabled} sessionKeyFile is empty; expected the file of controllers.dashboard.sessionKeyFile"),
        "f.yaml:3: controllers.login.listen: login is enabled and listen is empty; expected an address and a port"
            .to_owned(),
    ];
    assert_eq!(found, expected);
    parsed(&format!(
        "controllers: {{instance: {{access: {{{LOGIN}}}}}, login: {{enabled: true, sessionKeyFile: /s, hostKeyFile: /h}}}}\n"
    ));
}
