//! The faults of a form, each beside its field.

use std::collections::BTreeMap;

use super::draft::{Draft, name_in};
use super::fields::{ENVIRONMENT, ENVIRONMENTS, Field, SPEC};
use crate::controllers::dashboard::action::result::{Failure, Outcome};
use crate::controllers::dashboard::texts::{Problem, Texts};
use crate::runtime::error::{ApiError, InvalidField};

/// The beginning of the message about a missing field.
const MISSING: &str = "Required value";

/// The faults of a form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    /// The messages by the name of their field in the form.
    pub fields: BTreeMap<String, String>,
    /// The other messages.
    pub others: Vec<String>,
    /// Whether the Template has changed since the form was loaded.
    pub is_outdated: bool,
}

impl Faults {
    /// Returns one message about a field.
    pub fn of_field(name: &str, message: String) -> Self {
        Self { fields: [(name.to_owned(), message)].into(), ..Self::default() }
    }

    /// Returns one message about the whole form.
    pub fn of_form(message: String) -> Self {
        Self { others: vec![message], ..Self::default() }
    }

    /// Returns the faults of a request that failed. In the YAML view (`is_text`), no fault has a field of its own.
    pub fn of(failure: &Failure, draft: &Draft, is_text: bool, texts: &Texts) -> Self {
        if let Failure::Api(ApiError::InvalidFields { fields, .. }) = failure {
            let keys = if is_text { None } else { Some(draft.keys.as_slice()) };
            return Self::of_fields(fields, keys, texts);
        }
        let (outcome, message) = failure.outcome();
        let sentence = match &outcome {
            Outcome::Failed(problem) => texts.problems.of(*problem).clone(),
            Outcome::Denied(causes) => texts.denied(causes),
            Outcome::Done(_) => String::new(),
        };
        let parts = [sentence, message].into_iter().filter(|part| !part.is_empty());
        let text = parts.collect::<Vec<_>>().join(" ");
        match outcome {
            Outcome::Failed(Problem::Taken) if !is_text => Self::of_field("name", text),
            Outcome::Failed(Problem::Changed) => Self { is_outdated: true, ..Self::of_form(text) },
            _ => Self::of_form(text),
        }
    }

    fn of_fields(fields: &[InvalidField], keys: Option<&[u32]>, texts: &Texts) -> Self {
        let mut faults = Self::default();
        for InvalidField { path, message } in fields {
            let is_missing = message.starts_with(MISSING);
            let message = if is_missing { &texts.templates.required } else { message };
            match keys.and_then(|keys| field_at(path, keys)) {
                Some(name) => {
                    let known = faults.fields.entry(name).or_default();
                    if !known.contains(message.as_str()) {
                        let gap = if known.is_empty() { "" } else { " " };
                        *known = format!("{known}{gap}{message}");
                    }
                }
                None => faults.others.push(format!("{path}: {message}")),
            }
        }
        faults
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.others.is_empty()
    }
}

/// Returns the name of the field in the form for a path in the object; `None` if the form has no such field.
fn field_at(path: &str, keys: &[u32]) -> Option<String> {
    if path == "metadata.name" {
        return Some("name".to_owned());
    }
    let path = path.strip_prefix("spec.")?;
    let Some(rest) = path.strip_prefix(ENVIRONMENTS) else {
        return Some(in_table(SPEC, path)?.name.to_owned());
    };
    let (index, rest) = rest.strip_prefix('[')?.split_once(']')?;
    let key = keys.get(index.parse::<usize>().ok()?)?;
    // A fault of the whole environment is shown at its name.
    let field = rest.strip_prefix('.').map_or(ENVIRONMENT.first(), |rest| in_table(ENVIRONMENT, rest));
    Some(name_in(*key, field?.name))
}

/// Returns the field whose path begins the path of a fault, or the first field below it.
fn in_table(table: &'static [Field], path: &str) -> Option<&'static Field> {
    let is_within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let joined = |field: &Field| field.path.join(".");
    let around = table.iter().find(|field| is_within(path, &joined(field)));
    around.or_else(|| table.iter().find(|field| is_within(&joined(field), path)))
}

#[cfg(test)]
mod unit_tests {
    use serde_json::json;

    use super::*;
    use crate::config::Language;
    use crate::controllers::dashboard::texts::texts;

    #[test]
    fn a_path_of_the_api_server_leads_to_its_field() {
        for (path, name) in [
            ("metadata.name", Some("name")),
            ("spec.deleteAfter", Some("deleteAfter")),
            ("spec.cleanup.deleteAfterCreation", Some("deleteAfterCreation")),
            ("spec.nodeSelector.disk", Some("nodeSelector")),
            ("spec.workspace.crownlabs.polito.it/WorkspaceRef.name", Some("workspace")),
            ("spec.environmentList[0].image", Some("e3.image")),
            ("spec.environmentList[1].resources.cpu", Some("e7.cpu")),
            ("spec.environmentList[1].resources", Some("e7.cpu")),
            ("spec.environmentList[1].resources.otherResources.nvidia.com/gpu", Some("e7.otherResources")),
            ("spec.environmentList[1].sharedVolumeMounts[2].mountPath", Some("e7.sharedVolumeMounts")),
            ("spec.environmentList[1].nodeSelector", Some("e7.nodes")),
            ("spec.environmentList[1]", Some("e7.name")),
            ("spec.environmentList[2].image", None),
            ("spec.environmentList", None),
            ("spec.deleteAfterwards", None),
            ("status.x", None),
            ("", None),
        ] {
            assert_eq!(field_at(path, &[3, 7]).as_deref(), name, "{path}");
        }
    }

    #[test]
    fn faults_are_beside_their_fields_and_the_others_above_the_form() {
        let texts = texts(Language::ENGLISH);
        let mut draft = Draft::of(&json!({"spec": {"environmentList": [{"name": "a"}]}}));
        draft.keys = vec![4];
        let field =
            |path: &str, message: &str| InvalidField { path: path.to_owned(), message: message.to_owned() };
        let fields = vec![
            field("spec.environmentList[0].image", "Required value"),
            field("spec.deleteAfter", "one"),
            field("spec.deleteAfter", "two"),
            field("spec.deleteAfter", "two"),
            field("spec.environmentList", "too few"),
        ];
        let failure = Failure::Api(ApiError::InvalidFields { message: "m".to_owned(), fields });
        let faults = Faults::of(&failure, &draft, false, texts);
        let of = |name: &str| faults.fields.get(name).map(String::as_str);
        assert_eq!(of("e4.image"), Some(texts.templates.required.as_str()));
        assert_eq!(of("deleteAfter"), Some("one two"));
        assert_eq!(faults.others, ["spec.environmentList: too few"]);
        let in_text = Faults::of(&failure, &draft, true, texts);
        assert!(in_text.fields.is_empty() && in_text.others.contains(&"spec.deleteAfter: one".to_owned()));
        let changed = Faults::of(&Problem::Changed.into(), &draft, false, texts);
        assert_eq!(changed.others, [texts.problems.of(Problem::Changed).clone()]);
        assert!(changed.is_outdated && !faults.is_outdated);
        let taken = Faults::of(&Problem::Taken.into(), &draft, false, texts);
        assert_eq!(taken.fields.keys().collect::<Vec<_>>(), ["name"]);
    }
}
