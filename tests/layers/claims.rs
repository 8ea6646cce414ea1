//! Each claim of the security model names tests that exist. In `docs/security-model.md` each row of a table and each
//! item of a list ends with the numbers of its claims. The table of claims in `docs/testing.md` lists the tests for
//! each number, and each of these is a test in the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::{Source, assert_none, is_rust, read, sources};

const MODEL: &str = "docs/security-model.md";
const CLAIMS: &str = "docs/testing.md";
/// The heading above the table of claims.
const HEADING: &str = "### Claims of the security model";
/// The address of that heading, in a link from the model.
const LINK: &str = "](testing.md#claims-of-the-security-model)";

/// The lines of a text with their numbers, without blocks of code.
fn lines(text: &str) -> Vec<(usize, &str)> {
    let mut is_code = false;
    let prose = text.lines().zip(1..).filter(|(line, _)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    prose.map(|(line, number)| (number, line)).collect()
}

/// The rows of the tables in a text, without their heads, each with the number of its line and its cells.
fn rows(text: &str) -> Vec<(usize, Vec<&str>)> {
    let lines = lines(text);
    let is_row = |line: &str| line.starts_with('|');
    let is_rule = |line: &str| is_row(line) && line.chars().all(|c| "|-: ".contains(c));
    let rows = lines.iter().enumerate().filter(|(at, (_, line))| {
        is_row(line) && !is_rule(line) && !lines.get(at + 1).is_some_and(|(_, next)| is_rule(next))
    });
    rows.map(|(_, (number, line))| (*number, line.trim_matches('|').split(" | ").map(str::trim).collect()))
        .collect()
}

/// The items of the lists in a text, each with the number of its first line.
fn items(text: &str) -> Vec<(usize, String)> {
    let mut items: Vec<(usize, String)> = Vec::new();
    let mut is_inside = false;
    for (number, line) in lines(text) {
        if line.starts_with("- ") {
            items.push((number, String::new()));
        }
        is_inside = line.starts_with("- ") || is_inside && line.starts_with("  ");
        if let Some((_, item)) = items.last_mut().filter(|_| is_inside) {
            item.push_str(line.trim());
        }
    }
    items
}

/// The texts between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The numbers at the end of a text, as in `[3, 4](testing.md#claims-of-the-security-model)`.
fn numbers(text: &str) -> BTreeSet<u32> {
    let before = text.strip_suffix(LINK).and_then(|before| before.rsplit_once('['));
    before
        .map(|(_, numbers)| numbers.split(", ").filter_map(|number| number.parse().ok()).collect())
        .unwrap_or_default()
}

/// The tests of the claims by their numbers. One number twice is a violation.
fn claims(text: &str, violations: &mut Vec<String>) -> BTreeMap<u32, Vec<String>> {
    let table = text.split_once(HEADING).map_or("", |(_, rest)| rest);
    let end = table.find("\n#").unwrap_or(table.len());
    let mut claims = BTreeMap::new();
    for (_, cells) in rows(&table[..end]) {
        let Some(number) = cells.first().and_then(|number| number.parse().ok()) else { continue };
        let tests = cells.get(2).map_or_else(Vec::new, |cell| quoted(cell).map(str::to_owned).collect());
        if claims.insert(number, tests).is_some() {
            violations.push(format!("{CLAIMS}: claim {number} is there twice"));
        }
    }
    claims
}

/// Whether a file has a test with the name, such as `web_ssh::rights::names_go_into_no_path`: the modules are the end
/// of the file's path, except for a module `tests` within the file. The names of browser tests are sentences:
/// `rights.spec: each route accepts one method`.
fn has(source: &Source, name: &str) -> bool {
    if let Some((file, title)) = name.split_once(".spec: ") {
        let is_one = |call: &str| source.text.contains(&format!("{call}(\"{title}\""));
        return source.path.ends_with(&format!("/{file}.spec.ts"))
            && ["test", "describe"].into_iter().any(is_one);
    }
    let (modules, function) = name.rsplit_once("::").unwrap_or(("", name));
    let path = source
        .path
        .trim_end_matches(".rs")
        .trim_end_matches(".py")
        .trim_end_matches("/mod")
        .replace('/', "::");
    let is_module = |modules: &str| path == modules || path.ends_with(&format!("::{modules}"));
    (is_module(modules) || modules.strip_suffix("::tests").is_some_and(is_module))
        && is_test(&source.text, function)
}

/// Whether a text has a test with this name: in Rust a function below an attribute such as `#[tokio::test]`.
fn is_test(text: &str, function: &str) -> bool {
    let attributes = |at: usize| text[..at].rsplit("\n\n").next().unwrap_or_default();
    let head = format!("fn {function}(");
    text.match_indices(&head)
        .any(|(at, _)| attributes(at).contains("test]") || attributes(at).contains("test("))
        || function.starts_with("test_") && text.contains(&format!("def {function}("))
}

#[test]
fn each_claim_of_the_security_model_has_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (model, tests) = (read(&root.join(MODEL)), read(&root.join(CLAIMS)));
    let mut violations = Vec::new();
    let claims = claims(&tests, &mut violations);
    assert!(claims.len() > 30, "{CLAIMS} has a table of claims below {HEADING:?}: {claims:?}");
    let rows = rows(&model).into_iter().map(|(line, cells)| (line, numbers(cells.last().unwrap_or(&""))));
    let items = items(&model).into_iter().map(|(line, item)| (line, numbers(&item)));
    for (line, numbers) in rows.chain(items) {
        if numbers.is_empty() {
            violations
                .push(format!("{MODEL}:{line}: ends without the numbers of its claims, as [1, 2{LINK}"));
        }
    }
    // Paragraphs have numbers, too, if they make a claim.
    let named: BTreeSet<u32> =
        model.match_indices(LINK).flat_map(|(at, _)| numbers(&model[..at + LINK.len()])).collect();
    let known: BTreeSet<u32> = claims.keys().copied().collect();
    violations
        .extend(named.difference(&known).map(|number| format!("{MODEL}: claim {number} is not in {CLAIMS}")));
    violations
        .extend(known.difference(&named).map(|number| format!("{CLAIMS}: claim {number} is not in {MODEL}")));
    let is_other =
        |path: &str| Path::new(path).extension().is_some_and(|of| of == "py") || path.ends_with(".spec.ts");
    let files = sources(&["src", "tests"], |path| is_rust(path) || is_other(path));
    for (number, tests) in &claims {
        if tests.is_empty() {
            violations.push(format!("{CLAIMS}: claim {number} has no test"));
        }
        let missing = tests.iter().filter(|name| !files.iter().any(|file| has(file, name)));
        violations.extend(missing.map(|name| format!("{CLAIMS}: claim {number}: there is no test {name}")));
    }
    assert_none("each claim of the security model names tests that exist", &violations);
}

#[test]
fn a_row_without_a_claim_and_a_missing_test_are_found() {
    let row = format!("| a | b |\n|---|---|\n| x | [1, 2{LINK} |\n```\n| code |\n```\n");
    assert_eq!(rows(&row), [(3, vec!["x", &*format!("[1, 2{LINK}")])]);
    assert_eq!(numbers(&format!("see [a](b.md), [1, 2{LINK}")), BTreeSet::from([1, 2]));
    assert_eq!(numbers("see below"), BTreeSet::new());
    let list = "- one\n  more\ntext\n- two\n```\n- code\n```\n";
    assert_eq!(items(list), [(1, "- onemore".to_owned()), (4, "- two".to_owned())]);
    let table = format!(
        "{HEADING}\n\n| n | claim | tests |\n|---|---|---|\n| 7 | c | `a::b`, `d` |\n| 7 | c | `e` |\n\n## Next\n| 8 | c | `e` |"
    );
    let mut violations = Vec::new();
    assert_eq!(claims(&table, &mut violations), BTreeMap::from([(7, vec!["e".to_owned()])]));
    assert_eq!(violations, ["docs/testing.md: claim 7 is there twice"]);
    assert_eq!(quoted("`a::b`, `d`").collect::<Vec<_>>(), ["a::b", "d"]);
    let text = "#[test]\n#[ignore]\nfn holds() {}\n\nfn helps() {}\n".to_owned();
    let source = Source { path: "src/x/rights.rs".to_owned(), text };
    assert!(has(&source, "x::rights::holds") && has(&source, "rights::tests::holds"));
    assert!(!has(&source, "x::rights::hold") && !has(&source, "y::rights::holds") && !has(&source, "holds"));
    assert!(!has(&source, "x::rights::helps"), "it is no test");
    let source =
        Source { path: "tests/x/rights.spec.ts".to_owned(), text: "test(\"it holds\", f)".to_owned() };
    assert!(has(&source, "rights.spec: it holds") && !has(&source, "rights.spec: it"));
}
