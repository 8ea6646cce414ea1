use super::super::environment::{ContainerStartupOptions, Environment};
use super::*;

fn environment(name: &str, archive: &str) -> Environment {
    let options = ContainerStartupOptions {
        source_archive_url: archive.to_owned(),
        ..ContainerStartupOptions::default()
    };
    Environment { name: name.to_owned(), container_startup_options: Some(options), ..Environment::default() }
}

fn spec() -> InstanceSpec {
    InstanceSpec {
        customization_urls: CustomizationUrls {
            content_origin: "older-origin".into(),
            content_destination: "older-destination".into(),
            status_check: "older-check".into(),
        },
        ..InstanceSpec::default()
    }
}

fn urls(origin: &str, destination: &str) -> ContentUrls {
    ContentUrls { origin: origin.to_owned(), destination: destination.to_owned() }
}

#[test]
fn the_newer_status_check_url_is_used_unless_it_is_empty() {
    assert_eq!(InstanceSpec::default().effective_status_check_url(), "");
    assert_eq!(spec().effective_status_check_url(), "older-check");
    let spec = InstanceSpec { status_check_url: "check".into(), ..spec() };
    assert_eq!(spec.effective_status_check_url(), "check");
}

#[test]
fn the_most_specific_content_origin_that_is_set_is_used() {
    let (web, bare) = (environment("web", "archive"), Environment::default());
    let with = |origin| InstanceSpec {
        content_urls: BTreeMap::from([("web".to_owned(), urls(origin, ""))]),
        ..spec()
    };
    assert_eq!(with("origin").content_origin(&web, true), "origin");
    assert_eq!(with("origin").content_origin(&web, false), "origin");
    assert_eq!(with("").content_origin(&web, true), "older-origin");
    assert_eq!(with("").content_origin(&web, false), "archive", "older URLs apply to the first environment");
    assert_eq!(with("origin").content_origin(&environment("db", ""), false), "");
    assert_eq!(InstanceSpec::default().content_origin(&web, true), "archive");
    assert_eq!(InstanceSpec::default().content_origin(&bare, true), "");
}

#[test]
fn the_most_specific_content_destination_that_is_set_is_used() {
    let with = |destination| InstanceSpec {
        content_urls: BTreeMap::from([("web".to_owned(), urls("", destination))]),
        ..spec()
    };
    assert_eq!(with("destination").content_destination("web", true), "destination");
    assert_eq!(with("destination").content_destination("db", true), "older-destination");
    assert_eq!(with("").content_destination("web", true), "older-destination");
    assert_eq!(with("").content_destination("web", false), "");
    // The exam agent writes its URLs under a key that stands for the first environment.
    let agent = |own| InstanceSpec {
        content_urls: BTreeMap::from([
            ("default".to_owned(), urls("agent-origin", "agent-destination")),
            ("web".to_owned(), urls("", own)),
        ]),
        ..spec()
    };
    assert_eq!(agent("").content_destination("web", true), "agent-destination");
    assert_eq!(agent("destination").content_destination("web", true), "destination");
    assert_eq!(agent("").content_destination("web", false), "");
    assert_eq!(agent("").content_origin(&environment("web", ""), true), "agent-origin");
    assert_eq!(InstanceSpec::default().content_destination("web", true), "");
}

#[test]
fn an_instance_chooses_its_nodes_only_where_the_template_lets_it() {
    let selector = |value: &str| Selector::from([("disk".to_owned(), value.to_owned())]);
    let (own, fixed, open) = (selector("own"), selector("fixed"), Selector::new());
    let spec = InstanceSpec { node_selector: Some(own.clone()), ..InstanceSpec::default() };
    assert_eq!(spec.placement(None), None);
    assert_eq!(spec.placement(Some(&open)), Some(&own));
    assert_eq!(spec.placement(Some(&fixed)), Some(&fixed));
    assert_eq!(InstanceSpec::default().placement(Some(&open)), None);
}
