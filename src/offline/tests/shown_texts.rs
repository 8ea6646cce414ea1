//! Texts of users reach the terminal, YAML, labels, statuses, the log and HTTP responses without control characters,
//! forged lines or panics. `clients::mail::tests::properties` tests the same for mails.

use http::StatusCode;
use proptest::prelude::*;
use tracing::info;

use super::*;
use crate::api::instance::Instance;
use crate::api::names::check_label_value;
use crate::api::why::{Facts, Row};
use crate::config::LogFormat;
use crate::explain::{course, instance};
use crate::manager::logging::tests::logged;
use crate::preview;
use crate::properties::{FORGED, hostile};
use crate::runtime::apply::{Verb, Write};
use crate::runtime::plan::KindInfo;
use crate::runtime::preview::Previewed;
use crate::runtime::{ObjectKey, http_server};

/// The number of values that are tried together, each in another field.
const AT_ONCE: usize = 40;

/// The paths of texts in a schema, without texts whose format the API server checks, such as times.
fn places_of_texts(schema: &JSONSchemaProps, place: &str, found: &mut Vec<String>) {
    for (name, member) in schema.properties.iter().flatten() {
        places_of_texts(member, &format!("{place}/{}", name.replace('~', "~0").replace('/', "~1")), found);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
        places_of_texts(item, &format!("{place}/0"), found);
    }
    if schema.type_.as_deref() == Some("string") && schema.format.is_none() && schema.enum_.is_none() {
        found.push(place.to_owned());
    }
}

/// The text fields of all kinds in the samples, and an annotation of each.
fn text_fields(samples: &[Value]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for crd in
        crds().into_iter().filter(|crd| samples.iter().any(|given| given["kind"] == *crd.spec.names.kind))
    {
        let kind = crd.spec.names.kind;
        let mut places = vec!["/metadata/annotations/note".to_owned()];
        for version in &crd.spec.versions {
            let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
            places_of_texts(schema.expect("a schema"), "", &mut places);
        }
        let places: BTreeSet<String> =
            places.into_iter().filter(|place| !["/apiVersion", "/kind"].contains(&&**place)).collect();
        assert!(places.len() > 5, "{kind} has texts");
        found.extend(places.into_iter().map(|place| (kind.clone(), place)));
    }
    found
}

/// Whether a text has a control character other than line ends, or a forged line.
fn is_bad(text: &str) -> bool {
    text.contains(|c| shown::is_control(c) && c != '\n') || text.lines().any(|line| line.starts_with(FORGED))
}

/// Whether a text that must be a single line has a control character.
fn is_bad_line(line: &str) -> bool {
    line.contains(shown::is_control)
}

/// The output of `why`, `status`, `plan --kubeconfig` and `takeover check` for an object.
fn printed(object: &Value) -> Vec<String> {
    let write = Write {
        verb: Verb::Patch,
        kind: KindInfo::of::<crate::api::instance::InstanceKind>(),
        key: ObjectKey::new("ns", "box"),
        subresource: Some("status"),
        before: json!({"spec": object["status"]}),
        body: json!({"spec": object["spec"], "status": object["status"]}),
    };
    let key = ObjectKey::new("ns", "box");
    let problems = vec![object["spec"].to_string(), text(object, "/spec/prettyName")];
    let preview = Previewed {
        controller: "instance",
        kind: "Instance",
        key,
        writes: vec![write.clone()],
        later: vec![write],
        remarks: problems.clone(),
        problems,
    };
    let mut texts = vec![preview::text::changes(&[preview], &[text(object, "/spec/prettyName")])];
    if object["kind"] == "Instance"
        && let Ok(read) = serde_json::from_value::<Instance>(object.clone())
    {
        let hostile = text(object, "/spec/prettyName");
        let warnings = Err(hostile.clone());
        let facts =
            Facts { instance: &read, owner: Some(&hostile), template: None, managers: None, warnings };
        texts.push(instance::text(&facts.why(), now()));
        let table = course::table(&[Row::of(&read, None)], now());
        assert_eq!(table.lines().count(), 4, "{table:?}");
        texts.push(table);
    }
    texts
}

/// The messages of the conditions of an object.
fn messages(object: &Value) -> impl Iterator<Item = String> {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.map(|condition| text(condition, "/message"))
}

/// The faults in the objects and messages made for these documents.
fn wrong(documents: &[Value], config: &Config) -> Vec<String> {
    let mut planning = Planning::new(named(documents), None, config).expect("every text can be read");
    let output = planning.plan().expect("a plan");
    // Stored conditions of other writers stay unchanged until they are displayed.
    let stored: Vec<String> = documents.iter().flat_map(messages).collect();
    let mut found = Vec::new();
    let mut expect = |is_good: bool, what: &str, text: &str| {
        if !is_good {
            found.push(format!("{what}: {text:?}"));
        }
    };
    let yaml = output.text(Format::Yaml).expect("YAML");
    let is_same = serde_saphyr::from_multiple::<Value>(&yaml).is_ok_and(|read| read == output.objects);
    expect(!is_bad(&yaml) && is_same, "YAML", &yaml);
    for said in &output.messages {
        expect(!is_bad_line(said), "message", said);
    }
    let _ = unrest(&planning, &output);
    let loops = planning.of_cluster.iter().chain(&planning.in_namespaces);
    let reconciled = loops.flat_map(|built| built.written(now(), None)).map(|(object, _)| object);
    for object in output.objects.into_iter().chain(reconciled) {
        for (key, value) in object["metadata"]["labels"].as_object().into_iter().flatten() {
            let label = format!("{} of {}/{}: {value}", key, object["kind"], object["metadata"]["name"]);
            expect(check_label_value(value.as_str().unwrap_or_default()).is_ok(), "label", &label);
        }
        for said in messages(&object).filter(|said| !stored.contains(said)) {
            expect(!is_bad_line(&said) && said.len() < 5_000, "condition", &said);
        }
        for text in printed(&object) {
            expect(!is_bad(&text), "printed", &text);
        }
        let answer = http_server::response(StatusCode::OK, "application/json", object.to_string());
        let answer = std::str::from_utf8(answer.body()).expect("text");
        let is_same = serde_json::from_str::<Value>(answer).is_ok_and(|read| read == object);
        expect(!is_bad_line(answer) && is_same, "answer", answer);
    }
    found
}

proptest! {
    #![proptest_config(crate::properties::cases(25))]

    #[test]
    fn texts_are_shown_without_terminal_control_characters(
        values in prop::collection::vec((any::<prop::sample::Index>(), hostile()), AT_ONCE), group in 0..GROUPS,
    ) {
        static SAMPLES: std::sync::LazyLock<Vec<Value>> = std::sync::LazyLock::new(samples);
        static FIELDS: std::sync::LazyLock<Vec<(String, String)>> =
            std::sync::LazyLock::new(|| text_fields(&SAMPLES));
        let mut documents = of_group(&SAMPLES, group);
        for (at, value) in &values {
            let (kind, place) = at.get(&FIELDS);
            for document in documents.iter_mut().filter(|document| document["kind"] == **kind) {
                set(document, place, &json!(value));
            }
            for format in [LogFormat::Text, LogFormat::Json] {
                let line = logged(format, || info!(value, "{value}"));
                prop_assert!(!is_bad_line(line.trim_end_matches('\n')), "{:?}", line);
            }
            let answer = http_server::text(StatusCode::OK, value.clone());
            prop_assert!(!answer.body().iter().any(|byte| *byte < b' ' && *byte != b'\n'), "{:?}", answer);
        }
        let wrong = wrong(&documents, &Config::default());
        prop_assert!(wrong.is_empty(), "{:#?}", wrong.iter().take(5).collect::<Vec<_>>());
    }
}
