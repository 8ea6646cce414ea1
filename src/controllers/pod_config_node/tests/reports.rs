//! The reports for different results.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::kernel::*;
use crate::api::reason::{LINK_FAILED, RUNTIME_UNAVAILABLE};
use crate::controllers::pod_config_node::plan::{Plan, Unknown, problem};
use crate::controllers::pod_config_node::records::Desired;
use crate::controllers::pod_config_node::report::{Results, Sources, leftovers, report, unread};
use crate::controllers::pod_config_node::work::Plugged;
use crate::controllers::pod_network::Node;

fn desired_with(release: bool) -> Desired {
    desired(&[pool("lab", "10.77.0.0/24", &["br0"], &[("p1", "data", "br0", "10.77.0.2", release)])])
}

/// The reported entry of the only attachment.
fn of(
    desired: &Desired,
    settled: &Plan,
    results: &Results,
    busy: &[&str],
    stored: &BTreeMap<String, String>,
) -> Value {
    let busy: BTreeSet<String> = busy.iter().map(|&uid| uid.to_owned()).collect();
    let node = Node { node: "node-1".to_owned(), problem: None };
    let data = report(&node, &Sources { desired, settled, results, busy: &busy, stored });
    assert_eq!(data["node"], r#"{"node":"node-1"}"#);
    let text = data.get("p1");
    text.map_or(Value::Null, |text| serde_json::from_str::<Vec<Value>>(text).expect("JSON").remove(0))
}

fn unknown() -> Unknown {
    Unknown { mark: plugged().mark, name: "hdata4711".to_owned(), bridge: "br0".to_owned() }
}

fn plugged() -> Plugged {
    Plugged {
        mark: mark("lab", "p1", "data", "10.77.0.2/24"),
        bridge: ("br0".to_owned(), 5),
        host: ("hdata4711".to_owned(), 6),
        pod_link: "data4711".to_owned(),
        problem: None,
    }
}

#[test]
fn a_link_is_plugged_once_it_was_verified_and_released_once_it_is_gone() {
    let (wanted, none) = (desired_with(false), BTreeMap::new());
    let key = key("p1", "data");
    let settled =
        Plan { ends: BTreeMap::from([(key.clone(), end(6, &plugged().mark, 5))]), ..Plan::default() };
    let nothing = Results::new();
    let pending = of(&wanted, &settled, &nothing, &[], &none);
    assert_eq!((&pending["state"], &pending["problem"]), (&json!("pending"), &Value::Null));
    let verified = Results::from([(key.clone(), Ok(plugged()))]);
    let shown = of(&wanted, &settled, &verified, &[], &none);
    assert_eq!(
        shown,
        json!({
            "namespace": "lab", "podConfig": "lab", "podConfigUid": "pc", "pod": "p1", "attachment": "data",
            "state": "plugged", "podLink": "data4711", "hostLink": "hdata4711", "address": "10.77.0.2/24", "bridge": "br0",
        })
    );
    // The next process has not verified it yet, or cannot. The stored entry holds while the node's end exists.
    let stored = BTreeMap::from([("p1".to_owned(), json!([shown]).to_string())]);
    assert_eq!(of(&wanted, &settled, &nothing, &[], &stored), shown);
    let failed = |reason| Results::from([(key.clone(), Err(problem(reason, "a sentence")))]);
    assert_eq!(of(&wanted, &settled, &failed(RUNTIME_UNAVAILABLE), &[], &stored), shown);
    assert_eq!(of(&wanted, &settled, &failed(LINK_FAILED), &[], &stored)["state"], "pending");
    let gone = Plan::default();
    assert_eq!(of(&wanted, &gone, &nothing, &[], &stored)["state"], "pending");
    let message = &of(&wanted, &gone, &failed(RUNTIME_UNAVAILABLE), &[], &stored)["problem"]["message"];
    assert_eq!(message, "a sentence");

    let released = desired_with(true);
    assert_eq!(of(&released, &settled, &verified, &[], &stored)["state"], "pending");
    assert_eq!(of(&released, &gone, &verified, &["p1"], &stored)["state"], "pending", "it is being changed");
    let left = Plan { left: BTreeSet::from([key.clone()]), ..Plan::default() };
    assert_eq!(of(&released, &left, &verified, &[], &stored)["state"], "pending");
    assert_eq!(of(&released, &gone, &verified, &[], &stored)["state"], "released");
    // No pool covers it: the stored entry stays for the leader.
    let unknown = Plan { unknown: BTreeMap::from([(key, unknown())]), ..Plan::default() };
    assert_eq!(of(&Desired::default(), &unknown, &nothing, &[], &stored), shown);
    // There is no stored entry, or a different one: the entry is derived from the link.
    let told = json!({
        "namespace": "lab", "podConfig": "", "podConfigUid": "pc", "pod": "", "attachment": "data",
        "state": "pending", "hostLink": "hdata4711", "address": "10.77.0.2/24", "bridge": "br0",
    });
    assert_eq!(of(&Desired::default(), &unknown, &nothing, &[], &none), told);
    let mut other = shown.clone();
    other["address"] = json!("10.77.0.9/24");
    let other = BTreeMap::from([("p1".to_owned(), json!([other]).to_string())]);
    let named = of(&Desired::default(), &unknown, &nothing, &[], &other);
    assert_eq!((&named["address"], &named["podConfig"]), (&told["address"], &json!("lab")));
    assert_eq!(of(&Desired::default(), &gone, &nothing, &[], &stored), Value::Null);
}

#[test]
fn unwanted_links_and_bridges_are_reported() {
    let none = Desired::default();
    assert_eq!(leftovers(&desired_with(true), &Plan::default()), None);
    let all = (0..7).map(|number| (key(&format!("p{number}"), "data"), unknown())).collect();
    let said = leftovers(&none, &Plan { unknown: all, ..Plan::default() }).expect("a sentence");
    let named = "hdata4711 with 10.77.0.2/24 of namespace lab";
    assert!(said.contains(&format!(" leader (podConfig) decides about them: {named}, ")), "{said}");
    assert!(said.ends_with(&format!("{named} and 2 more")), "{said}");
    let left = BTreeSet::from([key("p1", "data")]);
    let problems = BTreeMap::from([(key("p1", "data"), problem(LINK_FAILED, "no"))]);
    let said = leftovers(&none, &Plan { problems, left, ..Plan::default() });
    let expected = "links to be removed still exist: data of the pod with uid p1 (no)";
    assert_eq!(said.as_deref(), Some(expected));
    let kept = BTreeMap::from([("br0".to_owned(), "cannot be removed".to_owned())]);
    let said = leftovers(&none, &Plan { kept, ..Plan::default() }).expect("a sentence");
    assert!(
        said.ends_with("bridges that no PodConfig uses still exist: br0, which cannot be removed"),
        "{said}"
    );
    let (name, mut data) = pool("lab", "10.77.0.0/24", &["br0"], &[]);
    data.insert("p1".to_owned(), "nonsense".to_owned());
    let said = leftovers(&desired(&[(name, data)]), &Plan::default()).expect("a sentence");
    assert!(said.contains("key p1"), "{said}");
}

#[test]
fn a_node_that_cannot_read_its_links_says_why_and_keeps_the_stored_entries() {
    let why = problem(LINK_FAILED, "the network namespace of the node cannot be used");
    let node = Node { node: "node-1".to_owned(), problem: Some(why) };
    let text = r#"{"node":"node-1","problem":{"reason":"LinkFailed","message":"the network namespace of the node cannot be used"}}"#;
    let own = ("node".to_owned(), text.to_owned());
    assert_eq!(unread(&node, &BTreeMap::new()), BTreeMap::from([own.clone()]));
    let said = ("p1".to_owned(), r#"[{"attachment":"data"}]"#.to_owned());
    let before = BTreeMap::from([said.clone(), ("node".to_owned(), r#"{"node":"node-1"}"#.to_owned())]);
    assert_eq!(unread(&node, &before), BTreeMap::from([said, own]));
}
