//! The output of commands. Control characters are escaped, because users have written parts of the texts. Texts for
//! people are coloured in a terminal.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use anyhow::Context;

/// Prints a text to standard output.
pub fn print(text: &str) -> anyhow::Result<()> {
    write(crownlabs::escaped_lines(text).as_bytes())
}

/// Prints a text for people to standard output, with colours in a terminal.
pub fn print_coloured(text: &str) -> anyhow::Result<()> {
    let is_coloured = is_coloured(std::io::stdout().is_terminal(), |name| std::env::var_os(name));
    write(shown(text, is_coloured).as_bytes())
}

/// Prints a line to standard error. If that cannot be written, such as on a full disk, the exit code remains.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", crownlabs::escaped_lines(text));
}

/// Prints a text for people to standard error, with colours in a terminal.
pub fn say_coloured(text: &str) {
    let is_coloured = is_coloured(std::io::stderr().is_terminal(), |name| std::env::var_os(name));
    let _ = write!(std::io::stderr(), "{}", shown(text, is_coloured));
}

/// Writes to standard output. A closed pipe (`crownlabs crd | head`) ends the output without an error.
pub fn write(text: &[u8]) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("standard output cannot be written"),
    }
}

/// Whether an output is coloured: a terminal that shows colours, unless `NO_COLOR` has a value (<https://no-color.org>).
/// `TERM` is not set in the older consoles of Windows.
fn is_coloured(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_plain = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    is_terminal && !is_plain && variable("TERM").is_some_and(|term| term != "dumb")
}

fn shown(text: &str, is_coloured: bool) -> String {
    let text = crownlabs::escaped_lines(text);
    if !is_coloured {
        return text.into_owned();
    }
    let painted = |line: &str| {
        let style = style(line);
        format!("{style}{line}{style:#}\n")
    };
    text.lines().map(painted).collect()
}

/// Returns the style of a line: of a difference, as Git has it; of a check; or of a heading.
fn style(line: &str) -> Style {
    let begins = |starts: &[&str]| starts.iter().any(|start| line.starts_with(start));
    if ["--- live", "+++ planned"].contains(&line) || (line.ends_with(':') && !begins(&[" ", "+", "-"])) {
        Style::new().bold()
    } else if begins(&["@@ "]) {
        AnsiColor::Cyan.on_default()
    } else if begins(&["+", "ok "]) {
        AnsiColor::Green.on_default()
    } else if begins(&["-", "failed "]) {
        AnsiColor::Red.on_default()
    } else {
        Style::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_is_coloured_and_only_without_no_color() {
        let terminal = [("TERM", "xterm-256color")];
        for (is_terminal, variables, expected) in [
            (true, &terminal[..], true),
            (false, &terminal, false),
            (true, &[("TERM", "xterm"), ("NO_COLOR", "1")], false),
            (true, &[("TERM", "xterm"), ("NO_COLOR", "")], true),
            (true, &[("TERM", "dumb")], false),
            (true, &[], false),
        ] {
            let variable = |name: &str| {
                variables.iter().find(|(of, _)| *of == name).map(|(_, value)| OsString::from(value))
            };
            assert_eq!(is_coloured(is_terminal, variable), expected, "{is_terminal} {variables:?}");
        }
    }

    #[test]
    fn lines_of_differences_checks_and_headings_have_styles() {
        let text = "Must be done:\n  a: b:\n--- live\n+++ planned\n@@ -1 +1 @@\n a:\n-b:\n+c\nok      d\nfailed  e\n";
        let expected = "\u{1b}[1mMust be done:\u{1b}[0m\n  a: b:\n\u{1b}[1m--- live\u{1b}[0m\n\u{1b}[1m+++ planned\u{1b}[0m\n\
                        \u{1b}[36m@@ -1 +1 @@\u{1b}[0m\n a:\n\u{1b}[31m-b:\u{1b}[0m\n\u{1b}[32m+c\u{1b}[0m\n\
                        \u{1b}[32mok      d\u{1b}[0m\n\u{1b}[31mfailed  e\u{1b}[0m\n";
        assert_eq!(shown(text, true), expected);
        assert_eq!(shown(text, false), text);
    }

    #[test]
    fn control_characters_of_users_stay_escaped() {
        assert_eq!(shown("+\u{1b}[31mx\n", true), "\u{1b}[32m+\\u{1b}[31mx\u{1b}[0m\n");
    }
}
