//! Tests of intact, damaged and foreign records.

use serde_json::{Map, Value, json};

use super::*;
use crate::controllers::pod_network::{POOL, difference};

fn range() -> Range {
    Range::parse("10.1.0.0/29").expect("a range")
}

fn allocation(address: &str) -> Value {
    json!({"pod": "p", "node": "n", "podConfig": "net", "podConfigUid": "c", "attachment": "x", "bridge": "br0", "address": address})
}

fn record(name: &str, label: &str, data: &Value) -> NetworkRecord {
    let metadata = json!({"name": name, "namespace": "system", "labels": {RECORD: label}});
    serde_json::from_value(json!({"metadata": metadata, "data": data})).expect("a record")
}

/// A pool with these lists of addresses, by the uid of a pod.
fn pool(pool: &Value, lists: &[(&str, &str)]) -> NetworkRecord {
    let mut data = json!({POOL_KEY: pool.to_string()});
    for (uid, list) in lists {
        data[*uid] = (*list).into();
    }
    record(&pool_name("lab", "10.1.0.0/29"), POOL, &data)
}

fn whole() -> Value {
    json!({"namespace": "lab", "range": "10.1.0.0/29", "gateway": "10.1.0.1", "bridges": ["br0"]})
}

#[test]
fn a_pool_is_read_as_it_was_written() {
    let mut written = PoolRecord::empty("lab", range());
    written.bridges = vec!["br0".to_owned()];
    let list = serde_json::from_value(json!([allocation("10.1.0.2")])).expect("a list");
    written.entries.insert("u".to_owned(), list);
    let found = record(&written.name(), POOL, &json!(written.data()));
    assert_eq!(read(&found), Some(Record::Pool(Arc::new(written.clone()))));
    assert_eq!(difference(&found.spec, &written.data()), Map::new());
    written.entries.clear();
    assert_eq!(Value::from(difference(&found.spec, &written.data())), json!({"u": null}));
}

#[test]
fn damaged_entries_are_skipped() {
    let one = json!([allocation("10.1.0.2")]).to_string();
    let two = json!([allocation("10.1.0.2"), allocation("10.1.0.3")]).to_string();
    for (lists, expected) in [
        (vec![("u", &*one)], Some((vec!["u 10.1.0.2"], false))),
        (vec![("u", &*one), ("v", &*two)], Some((vec!["u 10.1.0.2", "v 10.1.0.3"], true))),
        (vec![("u", "{"), ("v", &*two)], Some((vec!["v 10.1.0.2", "v 10.1.0.3"], true))),
        (vec![("u", "[]")], Some((vec![], true))),
    ] {
        let Some(Record::Pool(found)) = read(&pool(&whole(), &lists)) else { panic!("a pool") };
        let lines: Vec<String> =
            found.allocations().map(|(uid, one)| format!("{uid} {}", one.address)).collect();
        let (names, is_damaged) = expected.expect("a pool");
        assert_eq!((lines, found.is_damaged), (names.iter().map(ToString::to_string).collect(), is_damaged));
    }
    for address in ["10.1.0.0", "10.1.0.1", "10.1.0.7", "10.2.0.2", "fd00::2"] {
        let list = json!([allocation(address)]).to_string();
        let Some(Record::Pool(found)) = read(&pool(&whole(), &[("u", &list)])) else { panic!("a pool") };
        assert!(found.entries.is_empty() && found.is_damaged, "{address}");
    }
}

#[test]
fn the_name_of_a_record_determines_its_pool_regardless_of_the_content() {
    for (member, value) in [
        ("namespace", json!("other")),
        ("namespace", json!("../x")),
        ("range", json!("10.1.0.0/28")),
        ("range", json!("10.1.0.1/29")),
        ("range", json!("x")),
        ("bridges", json!(7)),
    ] {
        let mut changed = whole();
        changed[member] = value;
        let found = pool(&changed, &[("u", &json!([allocation("10.1.0.2")]).to_string())]);
        let Some(Record::Pool(found)) = read(&found) else { panic!("{changed}") };
        assert_eq!((found.namespace.as_str(), found.range), ("lab", range()), "{changed}");
        assert!(found.bridges.is_empty() && found.is_damaged, "{changed}");
        assert_eq!(found.entries.len(), 1, "its addresses are not lost: {changed}");
    }
    assert_eq!(read(&record("x", POOL, &json!({}))), None);
    assert_eq!(read(&record("x", "other", &json!({POOL_KEY: whole().to_string()}))), None);
}

#[test]
fn a_pool_is_found_from_the_name_of_its_record() {
    let long = "n".repeat(63);
    for namespace in ["lab", "a-10", "10-1", "node", "a--b", "fd00", &long] {
        for text in ["10.1.0.0/29", "fd00::/126", "fd00:1::/64", "2001:db8:0:1:1:1:1:0/112"] {
            let range = Range::parse(text).expect("a range");
            let name = pool_name(namespace, &range.to_string());
            for label in [POOL, REPORT, "other"] {
                let found = read(&record(&name, label, &json!({POOL_KEY: "{"})));
                let expected = PoolRecord { is_damaged: true, ..PoolRecord::empty(namespace, range) };
                assert_eq!(found, Some(Record::Pool(Arc::new(expected))), "{name}");
            }
            let end = name.len() - 1;
            let other = format!("{}{}", &name[..end], if name.ends_with('0') { '1' } else { '0' });
            assert_eq!(read(&record(&other, POOL, &json!({}))), None, "{other} is not the name of a pool");
        }
    }
    for name in ["podnet-", "podnet-x", "podnet-lab-10-1-0-0-29-", &report_name("10-1-0-0-29")] {
        assert_eq!(read(&record(name, POOL, &json!({}))), None, "{name}");
    }
}

#[test]
fn a_report_counts_only_under_the_name_of_its_node() {
    let link = json!({"namespace": "lab", "podConfig": "net", "podConfigUid": "c", "pod": "p", "attachment": "x",
        "state": "plugged", "podLink": "x7", "hostLink": "hx7", "address": "10.1.0.2/29", "bridge": "br0"});
    let data = json!({NODE_KEY: json!({"node": "n1"}).to_string(), "u": json!([link]).to_string(), "v": "{"});
    let Some(Record::Report(report)) = read(&record(&report_name("n1"), REPORT, &data)) else {
        panic!("a report")
    };
    assert_eq!(report.links.keys().collect::<Vec<_>>(), ["u"]);
    let found = &report.links["u"][0];
    assert_eq!(address(found), Some(("10.1.0.2".parse().expect("an address"), 29)));
    assert_eq!(address(&Link { state: LinkState::Released, ..found.clone() }), None);
    assert_eq!(found.text(), "{podVethName:x7 podIPAddr:10.1.0.2/29 peerVethName:hx7 bridge:br0}");
    assert_eq!(read(&record(&report_name("n2"), REPORT, &data)), None);
    for (member, text) in [
        ("namespace", "lab/pods?x"),
        ("namespace", ""),
        ("attachment", "a\u{1b}"),
        ("attachment", "abcdefghijklmnop"),
    ] {
        let mut other = link.clone();
        other[member] = json!(text);
        let data =
            json!({NODE_KEY: json!({"node": "n1"}).to_string(), "u": json!([link, other]).to_string()});
        let Some(Record::Report(report)) = read(&record(&report_name("n1"), REPORT, &data)) else {
            panic!("a report")
        };
        assert_eq!(report.links["u"].len(), 1, "{member} {text:?} is invalid for a link");
    }
}
