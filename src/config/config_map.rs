//! The configuration in the manifest of a `ConfigMap`, which administrators edit.

use super::fault::Fault;
use super::tree::{self, Content, Entry, Node};

/// The kind of the manifest.
const CONFIG_MAP: &str = "ConfigMap";
/// The kind of a configuration. It identifies the key of the configuration in `data`.
const CONFIGURATION: &str = "ControllerManagerConfiguration";

/// A configuration in a manifest.
#[derive(Debug)]
pub(super) struct Embedded {
    /// The text of the configuration.
    pub text: String,
    /// The line of its key in the manifest.
    line: Option<u64>,
    /// Whether the text is a literal block: each of its lines is a line of the manifest, from the line after the key
    /// on. Otherwise the text is quoted or folded.
    is_literal: bool,
}

impl Embedded {
    /// A fault of the configuration, with its line in the manifest.
    pub fn placed(&self, fault: Fault) -> Fault {
        let line = match (self.line, fault.line) {
            (Some(key), Some(line)) if self.is_literal => Some(key + line),
            (key, _) => key,
        };
        Fault { line, ..fault }
    }
}

/// The configuration in a manifest; `None` if the text is not the manifest of a `ConfigMap`, for example because it is
/// a configuration itself.
///
/// # Errors
/// When `data` does not contain exactly one configuration.
pub(super) fn embedded(file: &str, manifest: &str) -> Option<Result<Embedded, Fault>> {
    let tree = tree::read(manifest).ok()?;
    if tree.get("kind").and_then(Node::text) != Some(CONFIG_MAP) {
        return None;
    }
    let data = tree.get("data");
    let entries = match data.map(|data| &data.content) {
        Some(Content::Map(entries)) => entries.as_slice(),
        _ => &[],
    };
    let texts = || entries.iter().filter_map(|entry| Some((entry, entry.value.text()?)));
    let mut found: Vec<(&Entry, &str)> = texts().filter(|(_, text)| is_configuration(text)).collect();
    if found.is_empty() {
        // A single key is taken as the configuration, even if it is invalid.
        found = texts().collect();
    }
    let fault = |problem: String| {
        let expected = format!("expected one key such as crownlabs.yaml with kind: {CONFIGURATION}");
        Fault::new(file, data.and_then(|data| data.line), "data", problem, expected)
    };
    Some(match found.as_slice() {
        [] => Err(fault("no configuration".to_owned())),
        [(entry, text)] => Ok(Embedded {
            text: (*text).to_owned(),
            line: entry.line,
            is_literal: entry.line.is_some_and(|line| is_literal(manifest, line, text)),
        }),
        several => {
            let keys: Vec<&str> = several.iter().map(|(entry, _)| entry.key.as_str()).collect();
            Err(fault(format!("several keys: {}", keys.join(", "))))
        }
    })
}

fn is_configuration(text: &str) -> bool {
    let kind = tree::read(text).ok();
    kind.is_some_and(|tree| tree.get("kind").and_then(Node::text) == Some(CONFIGURATION))
}

/// Whether the lines of the manifest after the line of the key equal the lines of the text, apart from their
/// indentation.
fn is_literal(manifest: &str, key: u64, text: &str) -> bool {
    let below = manifest.lines().skip(usize::try_from(key).unwrap_or(usize::MAX));
    let mut below = below.map(str::trim_end);
    text.lines().map(str::trim_end).all(|line| {
        let indentation = below.next().and_then(|raw| raw.strip_suffix(line));
        indentation.is_some_and(|indentation| indentation.trim().is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Config, ConfigError};

    /// The faults of a file, a line each.
    fn faults(text: &str) -> Vec<String> {
        match Config::parse_any("f", text) {
            Ok(_) => Vec::new(),
            Err(ConfigError::Faults(faults)) => faults.iter().map(ToString::to_string).collect(),
            Err(other) => vec![other.to_string()],
        }
    }

    const HEAD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n";
    const BODY: &str =
        "apiVersion: config.crownlabs.polito.it/v1alpha1\nkind: ControllerManagerConfiguration\n";

    /// A manifest whose `data` has a configuration with these lines from line 8 on.
    fn manifest(lines: &str) -> String {
        let body = format!("{BODY}\n{lines}");
        let indented: Vec<String> = body.lines().map(|line| format!("    {line}\n")).collect();
        format!("{HEAD}data:\n  crownlabs.yaml: |\n{}", indented.concat())
    }

    #[test]
    fn the_configuration_of_a_manifest_is_checked_with_the_lines_of_the_manifest() {
        let sound = manifest("resync: {min: 2h}\nlog: {filter: debug}\n");
        let config = Config::parse_any("f", &sound).expect("it is valid");
        assert_eq!(config.log.filter, "debug");
        let broken = faults(&manifest("log:\n  filtre: debug\nresync: {min: soon}\n"));
        let at: Vec<&str> = broken.iter().map(|fault| fault.split(": ").next().unwrap_or_default()).collect();
        assert_eq!(at, ["f:10", "f:11"], "{broken:?}");
        assert!(broken[0].contains("log.filtre: unknown key; did you mean \"filter\"?"), "{broken:?}");
    }

    #[test]
    fn the_shipped_manifest_is_valid() {
        assert_eq!(faults(include_str!("../../manifests/20-configuration.yaml")), [""; 0]);
    }

    #[test]
    fn a_fault_in_a_quoted_or_folded_text_has_the_line_of_the_key() {
        let quoted = "\"apiVersion: config.crownlabs.polito.it/v1alpha1\\nkind: ControllerManagerConfiguration\\nx: 1\"";
        let folded = ">\n    apiVersion: config.crownlabs.polito.it/v1alpha1\n\n    kind: ControllerManagerConfiguration\n\n    x: 1\n";
        for text in [quoted, folded] {
            let found = faults(&format!("{HEAD}data:\n  any: {text}\n"));
            assert!(matches!(found.as_slice(), [one] if one.starts_with("f:5: x: unknown key")), "{found:?}");
        }
    }

    #[test]
    fn a_manifest_without_exactly_one_configuration_is_refused() {
        assert!(
            faults(HEAD)[0].starts_with("f: data: no configuration; expected one key"),
            "{:?}",
            faults(HEAD)
        );
        let two = format!("{HEAD}data:\n  a: \"1\"\n  b: \"2\"\n");
        assert!(faults(&two)[0].starts_with("f:5: data: several keys: a, b;"), "{:?}", faults(&two));
        // Other keys are allowed.
        let beside = format!("{}  notes: hello\n", manifest("log: {filter: info}\n"));
        assert_eq!(faults(&beside), [""; 0]);
        // A single key is the configuration, even without a kind.
        let unnamed = faults(&format!("{HEAD}data:\n  a: |\n    log: {{filter: info}}\n"));
        assert!(unnamed.iter().all(|fault| fault.starts_with("f:5: ")) && unnamed.len() == 2, "{unnamed:?}");
    }

    #[test]
    fn a_configuration_is_read_as_it_is() {
        assert_eq!(faults(BODY), [""; 0]);
        assert!(faults(&format!("{BODY}x: 1\n"))[0].starts_with("f:3: x: unknown key"));
        assert!(faults("a: [\n")[0].contains("not valid YAML"), "{:?}", faults("a: [\n"));
    }
}
