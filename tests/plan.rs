//! `crownlabs plan` as a command.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod endings;
mod golden;
mod refused;
mod routes;

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Runs the command with `input` on its standard input.
fn crownlabs(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_crownlabs"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_objects_equal_the_recorded_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key.pub");
    std::fs::write(&key, golden::MASTER_KEY).expect("written");
    let config = folder.path().join("crownlabs.yaml");
    std::fs::write(&config, golden::config(&key)).expect("written");
    let mut arguments = ["plan", "--allow-problems", "--config"].map(str::to_owned).to_vec();
    arguments.push(config.display().to_string());
    for file in golden::inputs() {
        arguments.extend(["-f".to_owned(), file.display().to_string()]);
    }
    arguments.extend(["-f".to_owned(), "-".to_owned()]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = crownlabs(&arguments, golden::MY_DRIVE);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut expected = golden::expected();
    expected.values_mut().for_each(golden::without_server_defaults);
    let uids = std::collections::BTreeMap::new();
    let planned = golden::documents(&text(&output.stdout));
    let planned: Vec<Value> = planned.into_iter().map(|object| golden::normalised(object, &uids)).collect();
    golden::assert_equal(&expected, &golden::by_name(planned));
}

#[test]
fn the_objects_of_tenants_equal_the_recorded_ones() {
    let config = "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
selector: {crownlabs.polito.it/operator-selector: local}
";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("crownlabs.yaml");
    std::fs::write(&file, config).expect("written");
    let file = file.display().to_string();
    // Two namespaces existed when the recording was made; here they are left out of the input, and planned.
    let inputs = golden::tenant_inputs();
    let inputs: Vec<&str> =
        inputs.split("\n---\n").filter(|text| !text.contains("kind: Namespace")).collect();
    let output = crownlabs(&["plan", "--config", &file, "-f", "-"], &inputs.join("\n---\n"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut expected = golden::expected_tenants();
    expected.values_mut().for_each(golden::without_server_defaults);
    let uids = std::collections::BTreeMap::new();
    let planned = golden::documents(&text(&output.stdout)).into_iter();
    let planned = planned.filter_map(|object| golden::normalised_tenant(object, &uids)).map(|mut object| {
        golden::without_server_defaults(&mut object);
        object
    });
    golden::assert_equal(&expected, &golden::by_place(planned.collect()));
}

#[test]
fn a_file_that_is_missing_or_not_yaml_is_named() {
    let missing = crownlabs(&["plan", "-f", "/does/not/exist.yaml"], "");
    let said = text(&missing.stderr);
    assert!(!missing.status.success() && said.contains("/does/not/exist.yaml"), "{said}");
    let broken = crownlabs(&["plan", "-f", "-"], "a: [1\n");
    let said = text(&broken.stderr);
    let begin = "crownlabs: standard input: line 1: not valid YAML: ";
    assert!(!broken.status.success() && said.starts_with(begin) && said.lines().count() == 1, "{said}");
}

#[test]
fn objects_that_no_api_server_would_store_are_refused_with_their_line() {
    let tenant = "---\napiVersion: crownlabs.polito.it/v1alpha2\nkind: Tenant\n";
    let line = "standard input:2: Tenant: metadata.name is missing; give the object a name";
    for (option, code) in [(None, 2), (Some("--allow-problems"), 0)] {
        let arguments: Vec<&str> = ["plan", "-f", "-"].into_iter().chain(option).collect();
        let output = crownlabs(&arguments, tenant);
        let (status, said) = (output.status.code(), text(&output.stderr));
        assert_eq!((status, said.lines().next()), (Some(code), Some(line)), "{said}");
    }
    let empty = crownlabs(&["plan", "-f", "-"], "# nothing\n");
    assert_eq!(text(&empty.stderr), "standard input: no object in it\n");
}

/// For a snapshot of a stopped virtual machine and for a shared volume, the Job and the claim are printed.
#[test]
fn snapshots_and_shared_volumes_are_planned() {
    let root = env!("CARGO_MANIFEST_DIR");
    let config = format!("{root}/config/demo.yaml");
    let sample = |name: &str| format!("{root}/manifests/samples/{name}.yaml");
    let (templates, storage, snapshot) =
        (sample("20-templates"), sample("40-storage"), sample("optional/snapshot"));
    let machine = |running: bool| {
        format!(
            "apiVersion: crownlabs.polito.it/v1alpha2
kind: Instance
metadata: {{name: server-1, namespace: tenant-ada-rossi}}
spec:
  running: {running}
  template.crownlabs.polito.it/TemplateRef: {{name: server, namespace: workspace-netlab}}
  tenant.crownlabs.polito.it/TenantRef: {{name: ada.rossi}}
"
        )
    };
    let arguments =
        ["plan", "--allow-problems", "--config", &config, "-f", &templates, &storage, "-f", &snapshot, "-"];
    let output = crownlabs(&arguments, &machine(false));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    for line in ["name: shvol-materials\n", "/adarossi/server-1:2", "claimName: server-1-server\n"] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    let messages = text(&crownlabs(&arguments, &machine(true)).stderr);
    assert!(messages.contains("server-1-as-submitted: the vm is running."), "{messages}");
}

/// For an exam to be uploaded, the Job is printed, or the reason why it waits; for an exam in progress, how often
/// its status URL is queried.
#[test]
fn exams_are_planned() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("crownlabs.yaml");
    let lines = "apiVersion: config.crownlabs.polito.it/v1alpha1
kind: ControllerManagerConfiguration
controllers: {termination: {enabled: true, statusCheckInterval: 2m}, submission: {enabled: true}}
";
    std::fs::write(&config, lines).expect("written");
    let config = config.display().to_string();
    let exam = |running: bool| {
        format!(
            "apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {{name: exam, namespace: workspace-exams}}
spec: {{environmentList: [{{name: main, environmentType: Container, image: i, persistent: true}}]}}
---
apiVersion: crownlabs.polito.it/v1alpha2
kind: Instance
metadata:
  name: exam.1
  namespace: exams
  labels: {{crownlabs.polito.it/instance-submission-requested: \"true\"}}
spec:
  running: {running}
  template.crownlabs.polito.it/TemplateRef: {{name: exam, namespace: workspace-exams}}
  tenant.crownlabs.polito.it/TenantRef: {{name: ada}}
  statusCheckUrl: https://exams.example.org/status?key=secret
  contentUrls: {{default: {{destination: https://exams.example.org/upload}}}}
"
        )
    };
    let stopped = crownlabs(&["plan", "--config", &config, "-f", "-"], &exam(false));
    let printed = text(&stopped.stdout);
    for line in
        ["  name: exam-1-submitter\n", "claimName: exam-1\n", "value: https://exams.example.org/upload\n"]
    {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    let running = crownlabs(&["plan", "--config", &config, "-f", "-"], &exam(true));
    assert!(!text(&running.stdout).contains("submitter"), "{}", text(&running.stdout));
    let messages = text(&running.stderr);
    for message in [
        "Instance exams/exam.1: the status URL at exams.example.org is queried every 2m",
        "Instance exams/exam.1: the upload waits until the Instance is off: spec.running is true",
    ] {
        assert!(messages.contains(message), "{message}: {messages}");
    }
    assert!(!messages.contains("secret"), "{messages}");
}

/// A snapshot test of the whole output for the samples: it shows how a change of the code changes the objects.
#[test]
fn the_plan_of_the_samples_is_as_reviewed() {
    let root = env!("CARGO_MANIFEST_DIR");
    let file = |name: &str| format!("{root}/{name}");
    let (config, samples) = (file("config/demo.yaml"), file("manifests/samples"));
    let optional = ["local-vm", "public-exposure"].map(|name| format!("{samples}/optional/{name}.yaml"));
    let output = crownlabs(&["plan", "--config", &config, "-f", &samples, &optional[0], &optional[1]], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "every sample can be made");
    insta::assert_snapshot!(text(&output.stdout));
}

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/samples");

#[test]
fn the_samples_are_planned_without_a_message_with_the_default_configuration() {
    let output = crownlabs(&["plan", "-f", SAMPLES], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    let objects = golden::by_name(golden::documents(&text(&output.stdout)));
    // The Tenant's objects are planned before the Instances: a container mounts the personal volume.
    let volumes = &objects["Deployment/wireshark-1-wireshark"]["spec"]["template"]["spec"]["volumes"];
    let drive = volumes.as_array().expect("volumes").iter().find(|volume| volume["name"] == "mydrive");
    let export = &drive.expect("mounted")["nfs"];
    assert_eq!(export["server"], "<server of volume mydrive-pvcs/ada-rossi-drive>");
    assert_eq!(export["path"], "<path of volume mydrive-pvcs/ada-rossi-drive>");
    for name in [
        "VirtualMachine/server-1-server",
        "ResourceQuota/crownlabs-resource-quota",
        "Namespace/tenant-carlo-verdi",
    ] {
        assert!(objects.contains_key(name), "{name}");
    }
    // A Secret in the files is used unchanged.
    let output = crownlabs(&["plan", "-f", SAMPLES, "-"], golden::MY_DRIVE);
    assert!(text(&output.stdout).contains("path: /exports/ada\n"), "{}", text(&output.stdout));
}

#[test]
fn several_files_and_folders_are_read_in_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let workspace = |name: &str| {
        format!(
            "apiVersion: crownlabs.polito.it/v1alpha1\nkind: Workspace\nmetadata: {{name: {name}}}\nspec: {{x: 1}}\n"
        )
    };
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        std::fs::write(&file, text).expect("written");
        file.display().to_string()
    };
    write("many/b.yml", &workspace("second"));
    write("many/a.yaml", &workspace("first"));
    write(
        "many/c.json",
        r#"{"apiVersion": "crownlabs.polito.it/v1alpha1", "kind": "Workspace", "metadata": {"name": "third"}, "spec": {"x": 1}}"#,
    );
    write("many/notes.txt", "no YAML: [");
    write("many/below/d.yaml", &workspace("below"));
    let many = folder.path().join("many").display().to_string();
    let (one, other) = (write("one.yaml", &workspace("one")), write("other.yaml", &workspace("other")));
    let output = crownlabs(&["plan", "-f", &other, &many, "-f", &one, "-"], &workspace("piped"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let messages = text(&output.stderr);
    // Each has an unknown field, so each is named once.
    let names: Vec<&str> =
        messages.lines().filter_map(|line| line.split_once(": Workspace ")).map(|(at, _)| at).collect();
    let expected = [
        format!("{other}:4"),
        format!("{many}/a.yaml:4"),
        format!("{many}/b.yml:4"),
        format!("{many}/c.json:1"),
        format!("{one}:4"),
        "standard input:4".to_owned(),
    ];
    assert_eq!(names[..6], expected, "{messages}");
    std::fs::create_dir(folder.path().join("empty")).expect("made");
    let output = crownlabs(&["plan", "-f", &folder.path().join("empty").display().to_string()], "");
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("empty has no file with YAML or JSON in it"), "{said}");
}

#[test]
fn unknown_fields_are_named_with_file_line_and_path() {
    let samples = std::fs::read_to_string(format!("{SAMPLES}/30-instances.yaml")).expect("the samples");
    let line = samples.lines().position(|line| line == "spec:").expect("a spec") + 2;
    let input = samples.replacen("spec:\n", "spec:\n  runing: false\n", 1);
    let output = crownlabs(&["plan", "--allow-problems", "-f", "-"], &input);
    assert!(output.status.success(), "it is a warning");
    let wanted = format!(
        "standard input:{line}: Instance tenant-ada-rossi/desktop-1: unknown field spec.runing, which the API server \
         drops; did you mean \"running\"?\n"
    );
    assert!(text(&output.stderr).starts_with(&wanted), "{}", text(&output.stderr));
}

#[test]
fn a_check_warns_about_routes_without_login() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("crownlabs.yaml").display().to_string();
    let said = |keys: &str| {
        let config = format!(
            "apiVersion: config.crownlabs.polito.it/v1alpha1\nkind: ControllerManagerConfiguration\n\
             controllers: {{instance: {{gatewayApi: {{parentRefs: [{{name: labs, namespace: gateways}}], {keys}}}}}}}\n"
        );
        std::fs::write(&file, config).expect("written");
        let output = crownlabs(&["config", "check", &file], "");
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), format!("{file} is valid\n"));
        text(&output.stderr)
    };
    let warning = said("enabled: true");
    let begin = format!(
        "{file}: warning: controllers.instance.gatewayApi.authenticated: the daemon does not authenticate users"
    );
    assert!(warning.starts_with(&begin) && warning.lines().count() == 1, "{warning}");
    assert_eq!(said("enabled: true, authenticated: true"), "");
    assert_eq!(said(&format!("enabled: true, policy: {}", routes::POLICY)), "");
    assert_eq!(said("enabled: false"), "", "there are no routes");
}

/// The key of the host names of machines, which the daemon creates in a cluster.
const HOST_KEY: &str = "{apiVersion: v1, kind: Secret, metadata: {name: crownlabs-machine-hosts, namespace: crownlabs-system,
  labels: {crownlabs.polito.it/managed-by: instance}}, data: {key: a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=}}";

#[test]
fn a_config_map_is_checked_and_used_as_the_configuration_in_it() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/20-configuration.yaml");
    let output = crownlabs(&["config", "check", shipped], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), format!("{shipped} is valid\n"));
    let manifest = std::fs::read_to_string(shipped).expect("the manifest");
    let line = manifest.lines().position(|line| line.contains("websiteBaseUrl")).expect("the key") + 1;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("changed.yaml").display().to_string();
    std::fs::write(&file, manifest.replace("websiteBaseUrl", "websiteUrl")).expect("written");
    let output = crownlabs(&["config", "check", &file], "");
    assert!(!output.status.success());
    let message = text(&output.stderr);
    let begin = format!("{file}:{line}: controllers.instance.websiteUrl: unknown key");
    assert!(message.starts_with(&begin), "{message}");
    // The same file works for `plan`.
    std::fs::write(&file, manifest.replace("crownlabs.example.com", "labs.example.net")).expect("written");
    let output = crownlabs(&["plan", "--config", &file, "-f", SAMPLES, "-"], HOST_KEY);
    assert!(text(&output.stdout).contains(".labs.example.net\n"), "{}", text(&output.stderr));
}

#[test]
fn a_conversion_of_values_exits_with_5_if_a_step_must_be_done_and_has_no_colours_in_a_pipe() {
    let convert = |values: &str| {
        let output = crownlabs(&["config", "from-values", "-"], values);
        (output.status.code(), text(&output.stderr), text(&output.stdout))
    };
    let (code, report, made) = convert("bastion: {image: {repository: r}}\n");
    assert_eq!(code, Some(5), "{report}");
    assert!(report.starts_with("Must be done before the file can be used:\n  bastion: copy its"), "{report}");
    assert!(
        report.contains("\nShould be known:\n  operator, ")
            && report.contains("\nIgnored:\n  bastion.image: ")
    );
    assert!(made.contains("\nbastion:\n") && !report.contains('\u{1b}'), "{made}{report}");
    let (code, report, _) =
        convert("exam-agent: {configurations: {targetNamespace: exams, allowedIPs: 192.0.2.0/24}}\n");
    assert_eq!(code, Some(0), "{report}");
    assert!(report.starts_with("Should be known:\n"), "{report}");
}

#[test]
fn each_command_has_a_man_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("man");
    let output = crownlabs(&["man", &pages.display().to_string()], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    for (name, sentence) in [
        ("crownlabs.1", "One daemon that runs every control loop"),
        ("crownlabs-run.1", "Run the control loops until SIGTERM"),
        ("crownlabs-plan.1", "Files with custom resources in YAML or JSON"),
        ("crownlabs-plan.1", "# Print the objects for the custom resources in a folder"),
        ("crownlabs-config-check.1", "Every fault is reported with its line"),
    ] {
        let page =
            std::fs::read_to_string(pages.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(page.contains(".TH") && page.contains(sentence), "{name}: {page}");
    }
    // The error names a folder that cannot be created.
    let refused = crownlabs(&["man", "/dev/null/man"], "");
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("the man pages cannot be written into /dev/null/man"));
}
