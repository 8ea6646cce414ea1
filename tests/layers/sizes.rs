//! How long files and functions may be.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::{Source, assert_none, is_rust, sources};

/// Lines of a file.
const FILE: usize = 400;
/// Lines of a function, from the line with `fn` to that of the closing brace.
const FUNCTION: usize = 60;

fn long_files(sources: &[Source]) -> Vec<String> {
    let lines = |source: &Source| source.text.lines().count();
    let long = sources.iter().filter(|source| lines(source) > FILE);
    long.map(|source| format!("{}: {} lines", source.path, lines(source))).collect()
}

fn long_functions(sources: &[Source]) -> Vec<String> {
    let mut long = Vec::new();
    for source in sources {
        let tokens = source.text.parse().unwrap_or_else(|error| panic!("{}: {error}", source.path));
        functions(tokens, &mut |name, first, last| {
            let lines = last - first + 1;
            if lines > FUNCTION {
                long.push(format!("{}:{first}: function {name} has {lines} lines", source.path));
            }
        });
    }
    long
}

/// Calls `found` with the name, the first and the last line of each function with a body, nested ones too.
fn functions(tokens: TokenStream, found: &mut dyn FnMut(&str, usize, usize)) {
    let mut tokens = tokens.into_iter().peekable();
    // Name and first line of the function whose body comes next.
    let mut open: Option<(String, usize)> = None;
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) if word == "fn" => {
                if let Some(TokenTree::Ident(name)) = tokens.peek() {
                    open = Some((name.to_string(), word.span().start().line));
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => open = None,
            TokenTree::Group(group) => {
                if group.delimiter() == Delimiter::Brace
                    && let Some((name, line)) = open.take()
                {
                    found(&name, line, group.span_close().end().line);
                }
                functions(group.stream(), found);
            }
            _ => {}
        }
    }
}

#[test]
fn no_file_has_more_than_400_lines() {
    assert_none("long files", &long_files(&sources(&["src", "tests", "benches", "examples"], is_rust)));
}

#[test]
fn no_function_has_more_than_60_lines() {
    assert_none(
        "long functions",
        &long_functions(&sources(&["src", "tests", "benches", "examples"], is_rust)),
    );
}

#[test]
fn lines_of_files_and_functions_are_counted() {
    let function = |name: &str, lines: usize| {
        format!(
            "    pub async fn {name}<T>(x: fn() -> T)\n    {{\n{}    }}\n",
            "        // a line\n".repeat(lines)
        )
    };
    let text = format!(
        "trait A {{\n    fn without_body();\n{}{}}}\n{}",
        function("short", FUNCTION - 3),
        function("long", FUNCTION - 2),
        "\n".repeat(FILE)
    );
    let source = [Source { path: "a.rs".to_owned(), text }];
    assert_eq!(long_functions(&source), ["a.rs:63: function long has 61 lines"]);
    assert_eq!(long_files(&source), ["a.rs: 524 lines"]);
}
