//! A server that lies and hangs: the lists stay as they were, the reason is reported, and nothing else is delayed.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::scripted::{Answer, Server, found, with};
use super::{KIND, await_images, await_queries, await_stale, existing, images, message, queries, writes};
use crate::daemon::{Daemon, Options, reserved_port};
use crate::lab::Lab;

/// The lists whose registries cannot be read, each with the reason of its condition, and a part of the message.
const FAULTS: [(&str, &str, &str); 12] = [
    ("f-down", "RegistryUnreachable", "Connection refused"),
    (
        "f-refuses",
        "RegistryRefused",
        "GET /f-refuses/v2/_catalog was answered 401 (UNAUTHORIZED): check the user",
    ),
    ("f-fails", "RegistryFailed", "was answered 500"),
    ("f-html", "RegistryBadAnswer", "the answer is not JSON"),
    ("f-null", "RegistryBadAnswer", "the answer is not a list of repositories"),
    ("f-hangs", "RegistryUnreachable", "no answer within 10s"),
    ("f-slow", "RegistryUnreachable", "no answer within 10s"),
    ("f-endless", "RegistryBadAnswer", "the answer is longer than 4 MiB"),
    ("f-short", "RegistryUnreachable", "GET /f-short/v2/_catalog: "),
    (
        "f-moved",
        "RegistryElsewhere",
        "and no request is sent there: set url to the address of the registry itself",
    ),
    ("f-tokens", "RegistryElsewhere", "for a token, and no request is sent there: set tokenUrl"),
    ("f-many", "ImageListTooLarge", "there are more than 10000 tags of a"),
];

fn tag_list(count: usize) -> String {
    let tags: Vec<String> = (0..count).map(|number| format!("v{number}")).collect();
    json!({"name": "a", "tags": tags}).to_string()
}

/// The responses of the server, below a path for each list; `thief` must never be called.
fn script(server: &Server, thief: &Server) {
    let one = r#"{"repositories": ["a"]}"#;
    let tokens = format!("401 No\r\nWWW-Authenticate: Bearer realm=\"{}\"", thief.url("/token"));
    for (name, answer) in [
        (
            "f-refuses",
            with(
                "401 No",
                r#"{"repositories": [], "errors": [{"code": "UNAUTHORIZED", "message": "s3cret"}]}"#,
            ),
        ),
        ("f-fails", with("500 No", r#"{"repositories": []}"#)),
        ("f-html", found("<html>")),
        ("f-null", found(r#"{"repositories": null}"#)),
        ("f-hangs", Answer::Hang),
        ("f-slow", Answer::Slow),
        ("f-endless", Answer::Endless),
        ("f-short", Answer::Short),
        ("f-moved", with(format!("307 Moved\r\nLocation: {}", thief.url("/v2/_catalog")), "")),
        ("f-tokens", with(tokens, "")),
        ("f-many", found(one)),
        ("f-full", found(one)),
        ("f-hostile", found(r#"{"repositories": ["ok", "../../api", "A", "a?b", "x y", ""]}"#)),
        ("f-good", found(one)),
    ] {
        server.set(format!("/{name}/v2/_catalog"), answer);
    }
    server.set("/f-many/v2/a/tags/list", found(tag_list(10_001)));
    server.set("/f-full/v2/a/tags/list", found(tag_list(10_000)));
    server.set(
        "/f-hostile/v2/ok/tags/list",
        found(r#"{"name": "ok", "tags": ["1", "a/b", "\n", "é", "latest"]}"#),
    );
    server.set("/f-good/v2/a/tags/list", found(r#"{"name": "a", "tags": ["1"]}"#));
    let root = "/f-harbor/api/v2.0/projects/labs/repositories";
    server.set(
        format!("{root}?page=1&page_size=100"),
        found(r#"[{"name": "labs/vm/desktop"}, {"name": "labs/chart"}]"#),
    );
    let artifacts = r#"[{"type": "IMAGE", "tags": [{"name": "2"}, {"name": "1"}]}, {"type": "CHART", "tags": [{"name": "0"}]}]"#;
    server.set(format!("{root}/vm%252Fdesktop/artifacts?page=1&page_size=100"), found(artifacts));
    server.set(
        format!("{root}/chart/artifacts?page=1&page_size=100"),
        found(r#"[{"type": "CHART", "tags": [{"name": "0"}]}]"#),
    );
}

/// The configuration, with one worker: a query that hangs must not occupy it.
fn config(server: &Server, secret: &str) -> String {
    let mut text = "controllers:\n  imageList:\n    enabled: true\n    concurrency: 1\n    updateInterval: 5s\n    registries:\n".to_owned();
    let others = ["f-full", "f-hostile", "f-good"];
    for name in FAULTS.iter().map(|(name, ..)| *name).chain(others) {
        let url = if name == "f-down" {
            format!("http://127.0.0.1:{}", reserved_port())
        } else {
            server.url(&format!("/{name}"))
        };
        let login = format!("username: ada, passwordFile: {secret}");
        writeln!(
            text,
            "    - {{imageListName: {name}, url: \"{url}\", registryName: r.example.org, {login}}}"
        )
        .expect("text");
    }
    let harbor = format!("type: harbor, project: labs, url: \"{}\"", server.url("/f-harbor"));
    writeln!(text, "    - {{imageListName: f-harbor, registryName: h.example.org, {harbor}}}").expect("text");
    text
}

#[test]
fn a_registry_that_fails_lies_or_hangs_changes_no_list_and_delays_none() {
    let lab = Lab::shared_unsimulated();
    let (server, thief) = (Server::start(), Server::start());
    script(&server, &thief);
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("password");
    std::fs::write(&secret, "hunter2").expect("written");
    for (name, ..) in FAULTS.iter().filter(|(name, ..)| *name != "f-null") {
        lab.apply(&existing(name));
    }
    let (kubeconfig, config) = (lab.service_account(), config(&server, &secret.display().to_string()));
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "faults", config: &config });
    // While others hang, this list follows its registry.
    for tag in 1..=3 {
        await_images(&lab, "f-good", |images| images == [format!("a: {tag}")]);
        let next = json!({"name": "a", "tags": [(tag + 1).to_string()]}).to_string();
        server.set("/f-good/v2/a/tags/list", found(next));
    }
    good_ones(&lab);
    for (name, reason, part) in FAULTS {
        let list = await_stale(&lab, name, "True", reason);
        let said = message(&list);
        assert!(
            said.contains(part) && !said.contains("hunter2") && !said.contains("s3cret"),
            "{name}: {said}"
        );
        let expected: Vec<String> = if name == "f-null" { Vec::new() } else { vec!["kept: 1".to_owned()] };
        assert_eq!(images(&list), expected, "{name}");
        let labels = if name == "f-null" { Value::Null } else { json!({"theirs": "yes"}) };
        assert_eq!(list["metadata"]["labels"], labels, "{name}");
    }
    // The same failures are not written again.
    let names = FAULTS.map(|(name, ..)| name);
    let mark = lab.cluster.audit().mark().expect("the audit log");
    await_queries(&daemon, &names, "failed", 2);
    let written = writes(&lab, mark, &names);
    assert!(written.is_empty(), "{written:#?}");
    assert_eq!(thief.all_requests(), 0, "no other server gets a request or a login");
    assert!(server.requests("/f-hangs/v2/_catalog") >= 2);
    assert!(!daemon.log().contains("hunter2"), "{}", daemon.log());
    let peak = daemon.size("VmHWM");
    println!("peak memory with {} registries: {peak} MiB", FAULTS.len() + 4);
    assert!(peak < 150, "{peak} MiB");
    // A corrected list is read again. An empty catalogue is accepted at the third query.
    let before = queries(&daemon, "f-fails", "succeeded");
    server.set("/f-fails/v2/_catalog", found(r#"{"repositories": []}"#));
    let list = await_stale(&lab, "f-fails", "False", "RegistryRead");
    assert_eq!(
        (images(&list), &list["status"]["lastSuccessTime"]),
        (Vec::new(), &Value::Null),
        "an empty registry"
    );
    assert!(queries(&daemon, "f-fails", "succeeded") >= before + 3);
    lab.await_event("default", "f-fails", "RegistryEmpty: the registry at ");
    drop(daemon);
    lab.delete(KIND, "", &names);
    lab.delete(KIND, "", &["f-full", "f-hostile", "f-good", "f-harbor"]);
}

/// Valid entries are listed, whatever other entries there are.
fn good_ones(lab: &Lab) {
    let list = await_images(lab, "f-full", |images| images.len() == 1);
    assert_eq!(list["spec"]["images"][0]["versions"].as_array().map(Vec::len), Some(10_000));
    await_images(lab, "f-hostile", |images| images == ["ok: 1"]);
    let list = await_stale(lab, "f-hostile", "False", "RegistryRead");
    let end = "offers 1 image with 1 tag; left out: 5 repositories and 3 tags with invalid names";
    assert!(message(&list).ends_with(end), "{}", message(&list));
    let list = await_images(lab, "f-harbor", |images| images == ["vm/desktop: 2 1"]);
    let expected = json!({
        "registryName": "h.example.org", "projectBaseName": "labs",
        "images": [{"name": "vm/desktop", "versions": ["2", "1"]}],
    });
    assert_eq!(list["spec"], expected);
}
