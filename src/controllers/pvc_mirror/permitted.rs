//! Label selectors in the notation of `kubectl`.

/// Whether labels satisfy all requirements of a selector, such as `a=b,c!=d,e in (f,g),h notin (i),j,!k`. `label` returns
/// the value of a label. An empty selector permits nothing.
///
/// # Errors
/// The requirement that cannot be parsed.
pub fn permits<'l>(selector: &str, label: impl Fn(&str) -> Option<&'l str>) -> Result<bool, String> {
    if selector.trim().is_empty() {
        return Ok(false);
    }
    let mut permits = true;
    for requirement in requirements(selector) {
        permits &= is_met(requirement.trim(), &label).ok_or_else(|| requirement.trim().to_owned())?;
    }
    Ok(permits)
}

/// The requirements of a selector: the texts between commas that are not in parentheses.
fn requirements(selector: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let is_end = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    selector.split(is_end).collect()
}

/// Whether labels satisfy a requirement; `None` if it cannot be parsed.
fn is_met<'l>(requirement: &str, label: &impl Fn(&str) -> Option<&'l str>) -> Option<bool> {
    if let Some(key) = requirement.strip_prefix('!') {
        return Some(label(word(key)?).is_none());
    }
    if let Some((key, value)) = requirement.split_once("!=") {
        return Some(label(word(key)?) != Some(value_of(value)?));
    }
    if let Some((key, value)) = requirement.split_once("==").or_else(|| requirement.split_once('=')) {
        return Some(label(word(key)?) == Some(value_of(value)?));
    }
    if let Some((key, set)) = requirement.split_once(char::is_whitespace) {
        let (operator, values) = set.trim().split_once('(')?;
        let values = values.strip_suffix(')')?.split(',').map(value_of).collect::<Option<Vec<_>>>()?;
        let is_in = label(word(key)?).is_some_and(|value| values.contains(&value));
        return match operator.trim() {
            "in" => Some(is_in),
            "notin" => Some(!is_in),
            _ => None,
        };
    }
    Some(label(word(requirement)?).is_some())
}

/// A key without spaces around it; `None` if it is empty or has other characters than those of keys.
fn word(text: &str) -> Option<&str> {
    value_of(text).filter(|word| !word.is_empty())
}

/// A value without spaces around it; `None` if it has other characters than those of keys and values.
fn value_of(text: &str) -> Option<&str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    Some(text.trim()).filter(|value| value.chars().all(is_allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_compared_with_labels() {
        let labels = [
            ("crownlabs.polito.it/type", "tenant"),
            ("crownlabs.polito.it/name", "ada.rossi"),
            ("empty", ""),
        ];
        let label = |key: &str| labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
        for (selector, expected) in [
            ("crownlabs.polito.it/type=tenant", Ok(true)),
            ("crownlabs.polito.it/type==tenant", Ok(true)),
            (" crownlabs.polito.it/type = tenant ", Ok(true)),
            ("crownlabs.polito.it/type=tenant,crownlabs.polito.it/name=ada.rossi", Ok(true)),
            ("crownlabs.polito.it/type=tenant,crownlabs.polito.it/name=eve", Ok(false)),
            ("crownlabs.polito.it/type=sandbox", Ok(false)),
            ("crownlabs.polito.it/type", Ok(true)),
            ("!crownlabs.polito.it/type", Ok(false)),
            ("absent", Ok(false)),
            ("!absent", Ok(true)),
            ("empty=", Ok(true)),
            ("absent=", Ok(false)),
            ("absent!=a", Ok(true)),
            ("crownlabs.polito.it/type!=tenant", Ok(false)),
            ("crownlabs.polito.it/type in (workspace, tenant),empty", Ok(true)),
            ("crownlabs.polito.it/type in (workspace)", Ok(false)),
            ("crownlabs.polito.it/type notin (workspace,sandbox)", Ok(true)),
            ("absent in (a)", Ok(false)),
            ("absent notin (a)", Ok(true)),
            ("", Ok(false)),
            (" ", Ok(false)),
            ("crownlabs.polito.it/type=tenant,", Err("")),
            ("a b", Err("a b")),
            ("a in b", Err("a in b")),
            ("a in (b", Err("a in (b")),
            ("a of (b)", Err("a of (b)")),
            ("a=b=c", Err("a=b=c")),
            ("a>1", Err("a>1")),
        ] {
            assert_eq!(permits(selector, label), expected.map_err(str::to_owned), "{selector:?}");
        }
    }
}
