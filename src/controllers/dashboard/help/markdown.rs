//! The part of Markdown that `docs/for-students.md` uses, as HTML: headings, paragraphs, lists, tables, code and links.

use maud::{Markup, html};

/// Renders a document. Blocks are separated by empty lines, also in lists.
pub fn rendered(document: &str) -> Markup {
    let blocks = document.split("\n\n").map(|block| block.trim_matches('\n'));
    html! { @for one in blocks.filter(|block| !block.is_empty() && !block.starts_with("<!--")) { (block(one)) } }
}

fn block(text: &str) -> Markup {
    let first = text.lines().next().unwrap_or_default();
    match first.split_once(' ').unwrap_or((first, "")) {
        ("#", title) => html! { h1 { (inline(title)) } },
        ("##", title) => html! { h2 id=(id(title)) { (inline(title)) } },
        ("###", title) => html! { h3 id=(id(title)) { (inline(title)) } },
        ("-", _) => html! { ul { @for item in items(text, "- ") { li { (inline(&item)) } } } },
        ("1.", _) => html! { ol { @for item in items(text, "1. ") { li { (inline(&item)) } } } },
        ("|", _) => table(text),
        _ if first.starts_with("```") => {
            let lines = text.lines().skip(1).filter(|line| !line.starts_with("```"));
            html! { pre tabindex="0" { code { (lines.collect::<Vec<_>>().join("\n")) } } }
        }
        _ => html! { p { (inline(&text.replace('\n', " "))) } },
    }
}

/// Returns the id of a heading, as mdBook forms it from simple titles.
fn id(title: &str) -> String {
    let plain = title.to_lowercase().replace(' ', "-");
    plain.chars().filter(|sign| sign.is_alphanumeric() || *sign == '-').collect()
}

/// Returns the items of a list, each in one line. Every item begins with the mark, and further lines are indented.
fn items(text: &str, mark: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix(mark), items.last_mut()) {
            (Some(item), _) => items.push(item.to_owned()),
            (None, Some(item)) => {
                item.push(' ');
                item.push_str(line.trim());
            }
            (None, None) => {}
        }
    }
    items
}

/// A table, whose second line separates the heading from the rows.
fn table(text: &str) -> Markup {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = text.lines();
    let head = lines.next().map(cells).unwrap_or_default();
    html! {
        table {
            thead { tr { @for cell in &head { th scope="col" { (inline(cell)) } } } }
            tbody { @for line in lines.skip(1) { tr { @for cell in cells(line) { td { (inline(&cell)) } } } } }
        }
    }
}

/// The marks within a line.
fn inline(text: &str) -> Markup {
    let marks = [("**", "**"), ("`", "`"), ("*", "*"), ("[", ")")];
    let marked = marks.into_iter().filter_map(|(open, close)| {
        let (before, rest) = text.split_once(open)?;
        let (inside, after) = rest.split_once(close)?;
        Some((before, open, inside, after))
    });
    // Of two marks at the same place, the longer one comes first.
    let Some((before, open, inside, after)) = marked.min_by_key(|(before, ..)| before.len()) else {
        return html! { (text) };
    };
    html! {
        (before)
        @match open {
            "**" => strong { (inside) },
            "`" => code { (inside) },
            "*" => em { (inside) },
            _ => { (link(inside)) },
        }
        (inline(after))
    }
}

/// A link, from its text and its target with `](` between them. Links to other documents are only text.
fn link(text: &str) -> Markup {
    match text.split_once("](") {
        Some((text, target)) if target.starts_with('#') => html! { a href=(target) { (text) } },
        Some((text, target)) if target.starts_with("https://") => {
            html! { a href=(target) rel="noopener noreferrer" { (text) } }
        }
        Some((text, _)) => html! { (text) },
        None => html! { (text) },
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn each_block_and_mark_is_rendered() {
        for (text, expected) in [
            ("# A title", "<h1>A title</h1>"),
            ("## Save your work!", "<h2 id=\"save-your-work\">Save your work!</h2>"),
            ("One\nline", "<p>One line</p>"),
            ("- a\n  b\n- **c** d", "<ul><li>a b</li><li><strong>c</strong> d</li></ul>"),
            ("1. a\n1. b", "<ol><li>a</li><li>b</li></ol>"),
            ("```sh\na <b\n```", "<pre tabindex=\"0\"><code>a &lt;b</code></pre>"),
            ("<!-- a comment -->", ""),
            ("`a*b` *c*", "<p><code>a*b</code> <em>c</em></p>"),
            ("[a](#b) and [c](d.md)", "<p><a href=\"#b\">a</a> and c</p>"),
            ("a < b * c", "<p>a &lt; b * c</p>"),
            (
                "| a | b |\n|---|---|\n| c | `d` |",
                "<table><thead><tr><th scope=\"col\">a</th><th scope=\"col\">b</th></tr></thead><tbody><tr><td>c</td>\
                 <td><code>d</code></td></tr></tbody></table>",
            ),
        ] {
            assert_eq!(rendered(text).into_string(), expected, "{text:?}");
        }
    }
}
