use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Returns the items and the head of a list that arrives in chunks of this size.
fn items(text: &str, size: usize) -> (Vec<String>, Option<Value>) {
    let (mut items, mut found) = (Items::default(), Vec::new());
    for chunk in text.as_bytes().chunks(size) {
        items.feed(chunk, |piece| match piece {
            Piece::Whole(item) => found.push(String::from_utf8(item.to_vec()).expect("text")),
            Piece::Begin(_) => panic!("no item is that long"),
        });
    }
    (found, items.head().and_then(|head| serde_json::from_slice(head).ok()))
}

#[test]
fn items_are_found_wherever_the_chunks_end() {
    let tricky = r#"{"a":"]}\\\"[{","items":[{"b":[1,{}]}]}"#;
    let head = json!({"metadata": {"continue": "x", "items": [{"no": 1}]}, "items": []});
    for (list, expected) in [
        (format!(r#"{{"metadata":{{"continue":"x","items":[{{"no":1}}]}},"items":[{tricky},{{}}]}}"#), 2),
        (
            format!(
                r#"{{"items" : [ {tricky} , {{}},null ],"metadata":{{"continue":"x","items":[{{"no":1}}]}}}}"#
            ),
            2,
        ),
        (r#"{"items":[],"metadata":{"continue":"x","items":[{"no":1}]}}"#.to_owned(), 0),
    ] {
        for size in 1..=list.len() {
            let (found, read) = items(&list, size);
            assert_eq!(found, [tricky, "{}"][..expected], "{size}");
            assert_eq!(read.as_ref(), Some(&head), "{size}");
            let (_, cut) = items(&list[..list.len() - 1], size);
            assert_eq!(cut, None, "a truncated list is not a list");
        }
    }
    for none in ["null", r#"{"items":null}"#, r#"{"kind":"Status","other":[{"a":1}]}"#, "<html>"] {
        assert_eq!(items(none, 3).0, Vec::<String>::new(), "{none}");
    }
}

#[test]
fn an_endless_head_is_not_collected() {
    let mut items = Items::default();
    for _ in 0..100 {
        items.feed(&vec![b'['; 1 << 20], |_| panic!("no item"));
    }
    assert!(items.head.capacity() <= 2 * LARGEST_HEAD && items.head().is_none());
}

#[test]
fn lines_are_found_wherever_the_chunks_end() {
    let text = b"one\n\ntwo\nthree";
    for size in 1..=text.len() {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for chunk in text.chunks(size) {
            lines.feed(chunk, |piece| match piece {
                Piece::Whole(line) => found.push(line.to_vec()),
                Piece::Begin(_) => panic!("no line is that long"),
            });
        }
        assert_eq!(found, [&b"one"[..], b"", b"two"]);
    }
}

#[test]
fn a_long_object_is_cut_and_named_and_the_next_one_is_whole() {
    let long = "x".repeat(LARGEST_OBJECT);
    let fake = json!({"name": "fake", "namespace": "fake"});
    let object =
        json!({"metadata": {"annotations": fake, "name": "a", "namespace": "ns"}, "data": {"k": long}});
    let event = json!({"type": "ADDED", "object": object});
    let list = format!(r#"{{"items":[{object},{{"metadata":{{"name":"b"}}}}],"metadata":{{}}}}"#);
    for size in [1 << 14, 1 << 30] {
        let mut found = Vec::new();
        let mut take = |piece: Piece<'_>| match piece {
            Piece::Whole(whole) => found.push(format!("whole {}", Piece::key(whole))),
            Piece::Begin(begin) => {
                assert_eq!(begin.len(), LARGEST_OBJECT);
                found.push(format!("begin {}", Piece::key(begin)));
            }
        };
        let mut items = Items::default();
        list.as_bytes().chunks(size).for_each(|chunk| items.feed(chunk, &mut take));
        assert!(items.head().is_some());
        let mut lines = Lines::default();
        let text = format!("{event}\n{{\"object\":{{\"metadata\":{{\"name\":\"b\"}}}}}}\n");
        text.as_bytes().chunks(size).for_each(|chunk| lines.feed(chunk, &mut take));
        assert_eq!(found, ["begin ns/a", "whole b", "begin ns/a", "whole b"]);
        assert!(items.item.bytes.capacity() <= KEPT_BUFFER && lines.0.bytes.capacity() <= KEPT_BUFFER);
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<i32>().prop_map(Value::from), ".{0,12}".prop_map(Value::from)];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop_oneof![Just("items".to_owned()), ".{0,6}"], inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_items_are_found(bodies in prop::collection::vec(json_value(), 0..6), other in json_value(), size in 1_usize..40) {
        let wanted: Vec<Value> = bodies.into_iter().map(|body| json!({"body": body})).collect();
        for text in [
            format!("{{\"other\":{other},\"items\":{}}}", json!(wanted)),
            format!("{{\"items\":{},\"other\":{other}}}", json!(wanted)),
        ] {
            let (found, head) = items(&text, size);
            let found: Vec<Value> = found.iter().map(|item| serde_json::from_str(item).expect("JSON")).collect();
            prop_assert_eq!(&found, &wanted);
            prop_assert_eq!(&head.expect("a head")["other"], &other);
        }
    }
}
