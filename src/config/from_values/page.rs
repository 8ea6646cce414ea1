//! The tables of the page on moving: every value of the operators' chart, and what becomes of it.

use std::path::Path;

use super::table::{Fate, PARTS, PODS, Row, WHOLE};
use crate::reference::{check_file, code, table};

/// The page, and the lines between which the tables are.
const PAGE: &str = "docs/moving-from-the-go-operators.md";
const BEGIN: &str = "<!-- values: generated from the code by `make generate` -->\n";
const END: &str = "<!-- values: end -->\n";

/// The text of a key or a value of the chart, which may be several.
fn codes(names: &str) -> String {
    names.split(", ").map(code).collect::<Vec<_>>().join(", ")
}

fn tables() -> String {
    let parts = PARTS.iter().flat_map(|part| part.rows.iter().map(|row| (part.names[0], row)));
    let all = || WHOLE.iter().map(|row| ("", row)).chain(parts.clone());
    let path = |(part, (path, _)): &(&str, &Row)| match *part {
        "" => (*path).to_owned(),
        part => format!("{part}.{path}"),
    };
    let mut carried = Vec::new();
    let mut left_out: Vec<(&str, Vec<String>)> = Vec::new();
    let pods = PODS.iter().map(|row| ("*", row));
    for entry in all().chain(pods) {
        let (_, (_, fate)) = &entry;
        match fate {
            Fate::Key(key, _) => carried.push(vec![code(&path(&entry)), codes(key)]),
            Fate::Chart(value) => {
                carried.push(vec![code(&path(&entry)), format!("{} of the chart", code(value))]);
            }
            Fate::With(names) => carried.push(vec![code(&path(&entry)), codes(names)]),
            Fate::Left(why) => match left_out.iter_mut().find(|(reason, _)| reason == why) {
                Some((_, paths)) => paths.push(code(&path(&entry))),
                None => left_out.push((why, vec![code(&path(&entry))])),
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
