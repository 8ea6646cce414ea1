//! The tables in the migration page: every value of the operators' chart and its replacement.

use std::path::Path;

use super::table::{Fate, PARTS, PODS, WHOLE, below};
use crate::reference::{check_file, code, table};

/// The page, and the markers around the tables.
const PAGE: &str = "docs/moving-from-the-go-operators.md";
const BEGIN: &str = "<!-- values: generated from the code by `make generate` -->\n";
const END: &str = "<!-- values: end -->\n";

/// Formats the name of a key or a value of the chart as code. It may be a list of names.
fn codes(names: &str) -> String {
    names.split(", ").map(code).collect::<Vec<_>>().join(", ")
}

fn tables() -> String {
    let parts = PARTS.iter().map(|part| part.rows(&format!("{}.", part.names[0])));
    let all = std::iter::once(below("", WHOLE)).chain(parts).chain([below("*.", PODS)]);
    let mut carried = Vec::new();
    let mut left_out: Vec<(&str, Vec<String>)> = Vec::new();
    for (path, fate) in all.flatten() {
        match fate {
            Fate::Key(key, _) => carried.push(vec![code(&path), codes(key)]),
            Fate::Chart(value) => carried.push(vec![code(&path), format!("{} of the chart", code(value))]),
            Fate::With(names) => carried.push(vec![code(&path), codes(names)]),
            Fate::Left(why) => match left_out.iter_mut().find(|(reason, _)| *reason == why) {
                Some((_, paths)) => paths.push(code(&path)),
                None => left_out.push((why, vec![code(&path)])),
            },
        }
    }
    let carried = table(&["value", "key of the configuration, or value of the chart"], carried);
    let left_out = left_out.into_iter().map(|(why, paths)| vec![paths.join(", "), why.to_owned()]);
    let left_out = table(&["value", "why it is left out"], left_out);
    format!("{carried}{left_out}")
}

#[test]
fn the_tables_of_values_are_up_to_date() {
    let stored = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).expect("the page");
    let (before, rest) = stored.split_once(BEGIN).expect("where the tables begin");
    let (_, after) = rest.split_once(END).expect("where they end");
    check_file(Path::new(PAGE), &format!("{before}{BEGIN}\n{}{END}{after}", tables()));
}
