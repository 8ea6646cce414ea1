//! The order of the layers: the modules of `src/` that each module may import.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::{Source, assert_none, is_rust, sources};

/// The layers. A module imports itself and modules of the rows above its own. Modules in one row do not import
/// each other. `lib.rs`, `main.rs` and the modules of the command line come after all of them and may import any module.
const LAYERS: [&[&str]; 12] = [
    &["api"],
    &["kinds"],
    &["config"],
    &["from_values", "runtime"],
    &["clients"],
    &["capture", "netlink"],
    // The dashboard and the command line share the actions on a class.
    &["class"],
    &["controllers", "webhook"],
    &["loops"],
    &["manager", "offline"],
    &["explain", "preview", "release"],
    &["classroom", "connect"],
];

/// The modules of `main.rs`.
const COMMAND_LINE: [&str; 4] = ["course", "examples", "inspect", "terminal"];

/// The modules below `controllers` that every loop may import.
const SHARED: [&str; 3] = ["accounts", "cleanup", "shared"];

/// The layers that hold data only: they name neither a client of the API server nor the async runtime.
const DATA_ONLY: [&str; 2] = ["api", "config"];
const CLIENTS: [&[&str]; 3] = [&["kube", "Client"], &["kube", "client"], &["tokio"]];

/// A path in the source text, such as the path of an import. Paths into this crate start with `crate`, however they
/// are written (`super::x`); others start with the name of the crate.
pub struct Import {
    pub path: Vec<String>,
    /// Counted from 1.
    line: usize,
}

/// The result of reading a file.
#[derive(Default)]
pub struct Reader {
    pub imports: Vec<Import>,
    /// The modules that exist in tests only.
    test_modules: Vec<Vec<String>>,
}

impl Reader {
    /// Reads the tokens of a module. Comments and the content of strings are not among them, and items with
    /// `#[cfg(test)]` are left out.
    pub fn read(&mut self, tokens: TokenStream, module: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if is_cfg_test(&tokens[at..]) {
                at = self.skip_test_item(&tokens, at + 2, module);
            } else if let Some((name, body)) = inline_module(&tokens[at..]) {
                self.read(body, &joined(module, &name));
                at += 3;
            } else if is_root(&tokens, at) {
                at = self.read_path(&tokens, at, Vec::new(), module);
            } else {
                if let TokenTree::Group(group) = &tokens[at] {
                    self.read(group.stream(), module);
                }
                at += 1;
            }
        }
    }

    /// Reads the path at `at`, or the paths of a group (`a::{b, c::d}`); returns where it ends.
    fn read_path(
        &mut self,
        tokens: &[TokenTree],
        mut at: usize,
        mut path: Vec<String>,
        module: &[String],
    ) -> usize {
        let line = tokens[at].span().start().line;
        while let Some(TokenTree::Ident(name)) = tokens.get(at) {
            path.push(name.to_string());
            at += 1;
            if !is_separator(tokens, at) {
                break;
            }
            at += 2;
        }
        if let Some(TokenTree::Group(group)) = tokens.get(at)
            && group.delimiter() == Delimiter::Brace
            && at > 0
            && is_colon(&tokens[at - 1])
        {
            let branches: Vec<TokenTree> = group.stream().into_iter().collect();
            for branch in branches.split(is_comma).filter(|branch| !branch.is_empty()) {
                self.read_path(branch, 0, path.clone(), module);
            }
            return at + 1;
        }
        let path = absolute(path, module);
        self.imports.push(Import { path, line });
        at
    }

    /// Skips the item after an attribute `#[cfg(test)]`; returns where it ends.
    fn skip_test_item(&mut self, tokens: &[TokenTree], mut at: usize, module: &[String]) -> usize {
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                TokenTree::Ident(word) if *word == "mod" => {
                    if let Some(TokenTree::Ident(name)) = tokens.get(at) {
                        self.test_modules.push(joined(module, &name.to_string()));
                    }
                }
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
                TokenTree::Punct(punct) if punct.as_char() == ';' => break,
                _ => {}
            }
        }
        at
    }
}

fn joined(module: &[String], name: &str) -> Vec<String> {
    [module, &[name.to_owned()]].concat()
}

fn is_colon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':')
}

fn is_comma(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')
}

/// Whether `::` is at `at`.
fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    [at, at + 1].iter().all(|at| tokens.get(*at).is_some_and(is_colon))
}

/// Whether a path that matters begins at `at`.
fn is_root(tokens: &[TokenTree], at: usize) -> bool {
    let TokenTree::Ident(name) = &tokens[at] else { return false };
    let is_first = at < 2 || !is_separator(tokens, at - 2);
    let is_known = ["crate", "self", "super", "kube", "tokio"].iter().any(|root| name == root);
    is_first && is_known && is_separator(tokens, at + 1)
}

fn is_cfg_test(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(hash), TokenTree::Group(attribute), ..] = tokens else { return false };
    let text: String = attribute.stream().to_string().split_whitespace().collect();
    hash.as_char() == '#' && text == "cfg(test)"
}

/// Name and content of the module that begins here, if it is written out.
fn inline_module(tokens: &[TokenTree]) -> Option<(String, TokenStream)> {
    match tokens {
        [TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Group(body), ..]
            if *word == "mod" && body.delimiter() == Delimiter::Brace =>
        {
            Some((name.to_string(), body.stream()))
        }
        _ => None,
    }
}

/// The path from the root of the crate, if it is a path into this crate.
fn absolute(mut path: Vec<String>, module: &[String]) -> Vec<String> {
    if path.last().is_some_and(|name| name == "self") && path.len() > 1 {
        path.pop();
    }
    let ups = path.iter().take_while(|name| *name == "super").count();
    let prefix = match path.first().map(String::as_str) {
        Some("self") => {
            path.remove(0);
            module
        }
        Some("super") => {
            path.drain(..ups);
            &module[..module.len().saturating_sub(ups)]
        }
        _ => return path,
    };
    [&["crate".to_owned()], prefix, &path].concat()
}

/// The module that a file of `src/` holds; empty for `lib.rs` and `main.rs`.
pub fn module_of(path: &str) -> Vec<String> {
    let path = path.trim_start_matches("src/").trim_end_matches(".rs");
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    if ["mod", "lib", "main"].contains(&parts.last().map_or("", String::as_str)) {
        parts.pop();
    }
    parts
}

pub fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// The imports that the rules forbid: file, line and path, then the rule.
fn violations(sources: &[Source]) -> Vec<(String, String)> {
    let read: Vec<(&Source, Reader)> = sources
        .iter()
        .filter(|source| !is_test_file(&source.path))
        .map(|source| {
            let tokens = source.text.parse().unwrap_or_else(|error| panic!("{}: {error}", source.path));
            let mut reader = Reader::default();
            reader.read(tokens, &module_of(&source.path));
            (source, reader)
        })
        .collect();
    let test_modules: Vec<&[String]> =
        read.iter().flat_map(|(_, reader)| reader.test_modules.iter().map(Vec::as_slice)).collect();
    let folder = |source: &Source| {
        let (name, _) = source.path.strip_prefix("src/controllers/")?.split_once('/')?;
        (!SHARED.contains(&name)).then(|| name.to_owned())
    };
    let loops: BTreeSet<String> = sources.iter().filter_map(folder).collect();
    let mut violations = Vec::new();
    for (source, reader) in &read {
        let module = module_of(&source.path);
        if test_modules.iter().any(|test| module.starts_with(test)) {
            continue;
        }
        for import in &reader.imports {
            if let Some(rule) = forbidden(&module, &import.path, &loops) {
                let path = import.path.join("::");
                violations.push((format!("{}:{}: {path}", source.path, import.line), rule));
            }
        }
    }
    violations
}

/// The rule that a path breaks.
fn forbidden(module: &[String], path: &[String], loops: &BTreeSet<String>) -> Option<String> {
    let layer = module.first().filter(|name| !COMMAND_LINE.contains(&name.as_str()))?;
    let (root, target) = path.split_first()?;
    if root != "crate" {
        let is_client = CLIENTS.iter().any(|client| path.iter().zip(*client).all(|(a, b)| a == b));
        return (is_client && DATA_ONLY.contains(&layer.as_str()))
            .then(|| format!("{layer} holds data only, without client and runtime"));
    }
    let imported = target.first()?;
    if layer != imported {
        let row = |name: &str| LAYERS.iter().position(|layers| layers.contains(&name));
        let (Some(own), Some(other)) = (row(layer), row(imported)) else {
            return Some(format!("{layer} or {imported} is not in the list of layers"));
        };
        return (other >= own)
            .then(|| format!("{layer} may import only {}", LAYERS[..own].concat().join(", ")));
    }
    let (from, to) = (module.get(1)?, target.get(1)?);
    let (is_inside, is_loop) = (SHARED.contains(&from.as_str()) || loops.contains(from), loops.contains(to));
    (layer == "controllers" && is_inside && is_loop && from != to).then(|| {
        format!("{from} may not import from the loop {to}: what loops share is in one of {SHARED:?}")
    })
}

#[test]
fn each_layer_imports_only_those_above_it_and_no_loop_another() {
    let violations = violations(&sources(&["src"], is_rust)).into_iter();
    let lines: Vec<String> = violations.map(|(import, rule)| format!("{import}: {rule}")).collect();
    assert_none("imports", &lines);
}

/// The forbidden imports of files with these paths and texts.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let source = |(path, text): &(&str, &str)| Source { path: (*path).to_owned(), text: (*text).to_owned() };
    let sources: Vec<Source> = files.iter().map(source).collect();
    violations(&sources).into_iter().map(|(import, _)| import).collect()
}

#[test]
fn imports_of_the_layers_above_are_allowed() {
    let files = [
        ("src/api/mod.rs", "use kube::core::ObjectMeta;\n// crate::runtime, tokio\npub mod names;"),
        ("src/kinds/core.rs", "use crate::api::{Kind, names::canonical};"),
        ("src/runtime/plan.rs", "use super::queue; use self::x::Y; use crate::kinds::Pod; use tokio::sync;"),
        ("src/controllers/mod.rs", "pub mod tenant; use self::tenant::Tenants; use crate::clients::http;"),
        ("src/controllers/tenant/mod.rs", "use crate::controllers::accounts; use super::Table;"),
        ("src/controllers/tenant/plan.rs", "/// [`crate::manager`]\nconst A: &str = \"crate::manager::x\";"),
        ("src/controllers/accounts/mod.rs", "use crate::controllers::shared::children; pub(crate) fn f() {}"),
        (
            "src/webhook/mod.rs",
            "#[cfg(test)]\nmod fixture;\n#[cfg(test)]\nmod tests { use crate::manager::X; }",
        ),
        ("src/webhook/fixture.rs", "use crate::controllers::tenant::names;"),
        ("src/webhook/tenant/tests/rules.rs", "use crate::manager::Task;"),
        ("src/manager/mod.rs", "use crate::controllers::tenant; use crate::webhook; use crate::runtime;"),
        ("src/lib.rs", "pub use crate::manager::run;"),
        ("src/inspect.rs", "use super::terminal::print;"),
    ];
    assert_eq!(found(&files), [""; 0]);
}

#[test]
fn imports_of_a_layer_below_or_beside_are_found_with_their_line() {
    let files = [
        ("src/api/mod.rs", "use k8s_openapi::ByteString;\nuse crate::config::Config;"),
        ("src/runtime/plan.rs", "fn f() { let x = vec![crate::controllers::f(1)]; }"),
        ("src/controllers/x.rs", "use crate::{\n    api::Kind,\n    manager::{Task, server::Page},\n};"),
        (
            "src/controllers/tenant/setup.rs",
            "use crate::webhook::view;\nuse super::super::super::manager::Task;",
        ),
        ("src/webhook/server.rs", "#[cfg(test)]\nuse crate::manager::A;\nuse crate::controllers::x;"),
        ("src/offline/mod.rs", "use crate::manager::Setup;"),
        ("src/runtime/store.rs", "mod inner { use super::super::super::clients::http; }"),
        ("src/unknown.rs", "use crate::api::Kind;"),
    ];
    let expected = [
        "src/api/mod.rs:2: crate::config::Config",
        "src/runtime/plan.rs:1: crate::controllers::f",
        "src/controllers/x.rs:3: crate::manager::Task",
        "src/controllers/x.rs:3: crate::manager::server::Page",
        "src/controllers/tenant/setup.rs:1: crate::webhook::view",
        "src/controllers/tenant/setup.rs:2: crate::manager::Task",
        "src/webhook/server.rs:3: crate::controllers::x",
        "src/offline/mod.rs:1: crate::manager::Setup",
        "src/runtime/store.rs:1: crate::clients::http",
        "src/unknown.rs:1: crate::api::Kind",
    ];
    assert_eq!(found(&files), expected);
}

#[test]
fn imports_between_loops_are_found() {
    let files = [
        ("src/controllers/tenant/plan.rs", "use crate::controllers::workspace::names;\nuse super::quota;"),
        ("src/controllers/workspace/plan.rs", "use super::super::{shared::children, tenant::Tenants};"),
        ("src/controllers/shared/children.rs", "fn f() -> crate::controllers::tenant::X {}"),
    ];
    let expected = [
        "src/controllers/tenant/plan.rs:1: crate::controllers::workspace::names",
        "src/controllers/workspace/plan.rs:1: crate::controllers::tenant::Tenants",
        "src/controllers/shared/children.rs:1: crate::controllers::tenant::X",
    ];
    assert_eq!(found(&files), expected);
}

#[test]
fn clients_and_the_runtime_are_found_in_layers_of_data() {
    let files = [
        ("src/api/object.rs", "use kube::{Client, core::Resource};\nuse tokio::sync::mpsc;"),
        ("src/config/mod.rs", "async fn f(client: kube::Client) { tokio::time::sleep(x).await }"),
        ("src/kinds/mod.rs", "use kube::Client;"),
    ];
    let expected = [
        "src/api/object.rs:1: kube::Client",
        "src/api/object.rs:2: tokio::sync::mpsc",
        "src/config/mod.rs:1: kube::Client",
        "src/config/mod.rs:1: tokio::time::sleep",
    ];
    assert_eq!(found(&files), expected);
}
