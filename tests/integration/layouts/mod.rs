//! Instances with one environment in both layouts, side by side: each opens where the dashboard of its generation opens
//! it, and has the SSH name that the dashboard shows.

mod open;
mod taken_over;

use serde_json::Value;

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, TEMPLATES, instance};
use cluster::audit::{Mark, writes};
use open::{Dashboard, open_all, shown};

const NAMESPACE: &str = "tenant-layouts";

fn daemon(lab: &Lab, layout: &str) -> Daemon {
    // Without login: there is no OAuth2 proxy here.
    let config = format!("controllers: {{instance: {{layout: {layout}, access: {{mode: none}}}}}}\n");
    Daemon::start(&Options { kubeconfig: &lab.admin(), selector: "layouts", config: &config })
}

/// The host and path that the Ingress of an Instance matches, and the URL in its status.
fn opened(lab: &Lab, ingress: &str, object: &Value) -> (String, String, String) {
    let found = lab.get("ingresses", NAMESPACE, ingress).unwrap_or_else(|| panic!("no Ingress {ingress}"));
    let rule = &found["spec"]["rules"][0];
    let path = rule["http"]["paths"][0]["path"].as_str().expect("a path").to_owned();
    let host = rule["host"].as_str().expect("a host").to_owned();
    (host, path, object["status"]["url"].as_str().expect("a URL").to_owned())
}

/// Asserts that a new Instance of every Template is where dashboards since 2025-11 look for it.
fn assert_per_environment(lab: &Lab, name: &str, template: &str, object: &Value) {
    let environment = object["status"]["environments"][0]["name"].as_str().expect("a name");
    let child = format!("{name}-{environment}");
    // `ssh … <instance>-<environment>.<namespace>`: the name of a Service.
    let service = lab.get("services", NAMESPACE, &child).unwrap_or_else(|| panic!("no Service {child}"));
    assert_eq!(service["spec"]["clusterIP"], object["status"]["ip"], "{child}");
    assert!(lab.get("services", NAMESPACE, name).is_none(), "{name}");
    if template == "cloudvm" {
        return;
    }
    let (host, path, url) = opened(lab, &child, object);
    // They open `<status.url>/<environment>/`, and browsers and proxies take `//` for `/`.
    let opens = format!("{}/{environment}/", url.trim_end_matches('/'));
    assert_eq!(object["status"]["environments"][0]["url"], opens, "{child}");
    let fixed = path.trim_end_matches("(.*)").trim_end_matches("(/|$)").trim_end_matches('/');
    assert_eq!(opens, format!("https://{host}{fixed}/"), "{child}");
}

/// Asserts that an Instance is where older dashboards look for it.
fn assert_classic(lab: &Lab, name: &str, template: &str, object: &Value) {
    let service = lab.get("services", NAMESPACE, name).unwrap_or_else(|| panic!("no Service {name}"));
    assert_eq!(service["spec"]["clusterIP"], object["status"]["ip"], "{name}");
    if template == "cloudvm" {
        return;
    }
    let suffix = if template == "standalone" { "app" } else { "gui" };
    let (host, path, url) = opened(lab, &format!("{name}-{suffix}"), object);
    assert_eq!(object["status"]["environments"][0]["url"], url.as_str(), "{name}");
    let fixed = path.trim_end_matches("(/|$)(.*)").trim_end_matches("/vnc");
    assert_eq!(url, format!("https://{host}{fixed}/"), "{name}");
}

#[test]
fn instances_keep_their_layout_and_new_ones_get_the_configured_one() {
    let lab = Lab::shared();
    let _course = lab.course("layouts");
    let mut first = daemon(&lab, "classic");
    for template in TEMPLATES {
        lab.apply(&instance("layouts", &format!("old-{template}"), template));
    }
    for template in TEMPLATES {
        let name = format!("old-{template}");
        let object = lab.await_phase(NAMESPACE, &name, "Ready");
        assert_classic(&lab, &name, template, &object);
    }
    first.stop();
    let begin = lab.cluster.audit().mark().expect("the audit log");
    let _second = daemon(&lab, "perEnvironment");
    for template in TEMPLATES {
        lab.apply(&instance("layouts", &format!("new-{template}"), template));
    }
    for template in TEMPLATES {
        let [old, new] = ["old", "new"].map(|age| format!("{age}-{template}"));
        let object = lab.await_phase(NAMESPACE, &new, "Ready");
        assert_per_environment(&lab, &new, template, &object);
        let object = lab.await_phase(NAMESPACE, &old, "Ready");
        assert_classic(&lab, &old, template, &object);
    }
    assert_untouched(&lab, begin);
    let of = |(age, dashboard): (&str, Dashboard)| {
        let found = |template: &str| lab.get("instances", NAMESPACE, &format!("{age}-{template}"));
        let each = |template| shown(&lab, &found(template).expect("the Instance"), dashboard);
        TEMPLATES.into_iter().flat_map(each).collect::<Vec<_>>()
    };
    let all = [("old", Dashboard::Classic), ("new", Dashboard::PerEnvironment)];
    open_all(&lab, &[NAMESPACE], &all.into_iter().flat_map(of).collect::<Vec<_>>());
}

/// Asserts that nothing was written for the older ones.
fn assert_untouched(lab: &Lab, begin: Mark) {
    let entries = lab.cluster.audit().since(begin).expect("the audit log");
    let touched: Vec<_> = writes(&entries)
        .filter(|e| e.user_agent.starts_with("crownlabs/") && e.namespace == NAMESPACE)
        .filter(|e| e.name.starts_with("old-") && e.resource != "events")
        .collect();
    assert!(touched.is_empty(), "{touched:#?}");
}
