//! The imports between the files of the dashboard: they have no circle, and few files lie between the router and a patch.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::{Reader, is_test_file, module_of};
use crate::{Source, assert_none, is_rust, sources};

const FOLDER: &str = "src/controllers/dashboard/";
/// The maximum number of files from the router to the patch.
const FILES: usize = 12;

/// The files, each with the files that it imports.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Returns the imports between files. An import names a file by the longest path of a module that it begins with.
fn graph(sources: &[Source]) -> Graph {
    let files: BTreeMap<Vec<String>, &str> =
        sources.iter().map(|source| (module_of(&source.path), source.path.as_str())).collect();
    let file_of =
        |path: &[String]| (1..=path.len()).rev().find_map(|length| files.get(&path[..length]).copied());
    let imports = |source: &Source| {
        let mut reader = Reader::default();
        let tokens = source.text.parse().unwrap_or_else(|error| panic!("{}: {error}", source.path));
        reader.read(tokens, &module_of(&source.path));
        let imported = reader.imports.iter().filter_map(|import| {
            let path = import.path.strip_prefix(&["crate".to_owned()])?;
            file_of(path).filter(|file| *file != source.path)
        });
        imported.map(str::to_owned).collect()
    };
    sources.iter().map(|source| (source.path.clone(), imports(source))).collect()
}

/// Returns the files that a file imports, directly or not, with the file itself.
fn reachable<'g>(graph: &'g Graph, file: &'g str) -> BTreeSet<&'g str> {
    let (mut found, mut open) = (BTreeSet::from([file]), vec![file]);
    while let Some(next) = open.pop() {
        let imports = graph[next].iter().map(String::as_str);
        open.extend(imports.filter(|import| found.insert(import)));
    }
    found
}

/// Returns the files that import themselves by way of others.
fn circles(graph: &Graph) -> Vec<String> {
    let is_in_circle =
        |file: &&String| graph[*file].iter().any(|import| reachable(graph, import).contains(file.as_str()));
    graph.keys().filter(is_in_circle).cloned().collect()
}

/// Returns the files on the paths of imports from one file to another.
fn between<'g>(graph: &'g Graph, from: &'g str, to: &str) -> Vec<&'g str> {
    reachable(graph, from).into_iter().filter(|file| reachable(graph, file).contains(to)).collect()
}

fn dashboard() -> Graph {
    let is_wanted = |path: &str| is_rust(path) && path.starts_with(FOLDER) && !is_test_file(path);
    graph(&sources(&["src"], is_wanted))
}

#[test]
fn the_imports_of_the_dashboard_have_no_circle() {
    let graph = dashboard();
    assert!(graph.len() > 40 && graph.values().any(|imports| !imports.is_empty()));
    assert_none("circles", &circles(&graph));
}

#[test]
fn few_files_lie_between_the_router_and_the_patch() {
    let graph = dashboard();
    let files =
        between(&graph, "src/controllers/dashboard/router.rs", "src/controllers/dashboard/action/request.rs");
    assert!((3..=FILES).contains(&files.len()), "{files:?}");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/architecture.md"));
    let page = page.expect("the page");
    let missing = files.iter().filter(|file| {
        let name = file.strip_prefix(FOLDER).expect("a file of the dashboard");
        !page.contains(&format!("`{name}`"))
    });
    assert_none("files that the page lacks", &missing.map(ToString::to_string).collect::<Vec<_>>());
}

#[test]
fn a_circle_is_found() {
    let source = |(path, text): (&str, &str)| Source { path: path.to_owned(), text: text.to_owned() };
    let graph = graph(&[
        source(("src/a/mod.rs", "pub mod b; use self::b::B;")),
        source(("src/a/b.rs", "use super::c::C;")),
        source(("src/a/c.rs", "use crate::a::d::{self, D}; use crate::x::y;")),
        source(("src/a/d.rs", "use super::b::B;\n#[cfg(test)]\nmod tests { use super::super::A; }")),
    ]);
    assert_eq!(circles(&graph), ["src/a/b.rs", "src/a/c.rs", "src/a/d.rs"]);
    assert_eq!(between(&graph, "src/a/mod.rs", "src/a/c.rs").len(), 4);
}
