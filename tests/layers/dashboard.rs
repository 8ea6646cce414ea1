//! The imports between the files of the dashboard: they have no circle, and a click passes few files.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::{Reader, is_test_file, module_of};
use crate::{Source, assert_none, is_rust, sources};

const FOLDER: &str = "src/controllers/dashboard/";
/// The maximum number of files from a click to the patch.
const FILES: usize = 12;
/// The section of `docs/architecture.md` with these files.
const SECTION: &str = "### From a click to a patch\n";

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

/// Returns the files from a click to the patch: the files between the router and the requests, and all that the handler
/// and the entry of the action import. Texts do not count, nor do files that import nothing but texts: nobody has to
/// follow them further.
fn passed(graph: &Graph) -> BTreeSet<&str> {
    let file = |name: &str| graph.get_key_value(&format!("{FOLDER}{name}")).expect("a file of the dashboard");
    let [handler, entry] = ["action/handler.rs", "machine/actions.rs"].map(file);
    let (router, request) = (file("router.rs").0, file("action/request.rs").0);
    let imported = [handler, entry].into_iter().flat_map(|(name, imports)| imports.iter().chain([name]));
    let is_text = |file: &str| file.starts_with(&format!("{FOLDER}texts/"));
    let leads_on = |file: &&str| graph[*file].iter().any(|import| !is_text(import));
    let all = between(graph, router, request).into_iter().chain(imported.map(String::as_str));
    all.filter(|file| !is_text(file)).filter(leads_on).collect()
}

/// Returns the files in the table of the section.
fn listed(page: &str) -> BTreeSet<String> {
    let (_, section) = page.split_once(SECTION).expect("the section");
    let (section, _) = section.split_once("\n#").expect("the next section");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(name, _)| format!("{FOLDER}{name}")).collect()
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
fn a_click_passes_at_most_12_files_and_the_page_lists_them() {
    let graph = dashboard();
    let files = passed(&graph);
    assert!(files.len() <= FILES, "{} files: {files:#?}", files.len());
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/architecture.md"));
    let listed = listed(&page.expect("the page"));
    assert_eq!(listed.iter().map(String::as_str).collect::<BTreeSet<_>>(), files, "listed, and passed");
}

#[test]
fn a_new_import_of_the_handler_counts_and_a_text_or_a_file_without_imports_does_not() {
    let source = |(name, text): &(&str, &str)| Source {
        path: format!("{FOLDER}{name}"),
        text: text.replace("dashboard::", "crate::controllers::dashboard::"),
    };
    let files = |of_handler: &str| {
        let sources = [
            ("router.rs", "use dashboard::action::handler::handle;"),
            ("action/handler.rs", of_handler),
            ("action/request.rs", "use dashboard::session::Session;"),
            ("machine/actions.rs", "use dashboard::paths::HOME;"),
            ("session.rs", "use dashboard::paths::HOME;"),
            ("paths.rs", ""),
            ("names.rs", "use dashboard::texts::Problem;"),
            ("texts/mod.rs", "use dashboard::paths::HOME;"),
        ];
        passed(&graph(&sources.iter().map(source).collect::<Vec<_>>())).len()
    };
    let before = "use dashboard::{action::request::Requests, names::name, paths, texts::Problem};";
    assert_eq!(files(before), 4, "router, handler, request and entry");
    assert_eq!(files(&format!("{before} use dashboard::session::Session;")), 5);
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
