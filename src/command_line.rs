//! The reference of the command line, from the arguments that `clap` reads. Tests only.

use clap::{Arg, ArgAction, Command, CommandFactory};
use std::fmt::Write;

use super::{Arguments, EXIT_FOUND, EXIT_REFUSED, EXIT_UNUSABLE, examples};
use crate::reference::{HEADER, check, code, escaped, table};

/// The exit codes. `clap` also uses 2 for an invalid command line.
const EXIT_CODES: [(u8, &str); 6] = [
    (0, "The command succeeded; `run`: it was stopped by SIGTERM or SIGINT."),
    (1, "An error, reported on standard error: a file, the configuration, the cluster."),
    (
        EXIT_REFUSED,
        "The command line is invalid; `plan -f`: something in the files cannot be made, as reported on standard error.",
    ),
    (
        crownlabs::EXIT_LEASE_LOST,
        "`run`: the lease was lost, or could not be renewed in time. Kubernetes starts the pod again, as a standby.",
    ),
    (
        EXIT_FOUND,
        "`plan` of a cluster: there are changes, as 1 in `kubectl diff`; `takeover check`: there is an obstacle; \
         `config check --connect`: a check failed; `why --exit-code`: the Instance is not ready; `class`: something was \
         refused, or is still to do. Otherwise they exit with 0.",
    ),
    (
        EXIT_UNUSABLE,
        "`config from-values`: a step must be done before the result can be used, as reported on standard error.",
    ),
];

/// Formats an argument as `--config FILE`, or as `FILE` for a positional one.
fn written(arg: &Arg) -> String {
    let values: Vec<String> = arg.get_value_names().into_iter().flatten().map(ToString::to_string).collect();
    let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let value = if takes_value { values.join(" ") } else { String::new() };
    let several = if matches!(arg.get_action(), ArgAction::Append) { "…" } else { "" };
    let names =
        [arg.get_short().map(|short| format!("-{short}")), arg.get_long().map(|long| format!("--{long}"))];
    let names: Vec<String> = names.into_iter().flatten().collect();
    let whole = [names.join(", "), format!("{value}{several}")];
    code(whole.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ").as_str())
}

/// Adds the section of a command, or the sections of its subcommands.
fn section(above: &str, command: &Command, page: &mut String) {
    let name = format!("{above} {}", command.get_name());
    let mut subcommands = command.get_subcommands().filter(|inner| inner.get_name() != "help").peekable();
    if subcommands.peek().is_some() {
        subcommands.for_each(|inner| section(&name, inner, page));
        return;
    }
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().bin_name(&name).render_usage().to_string();
    write!(page, "## {name}\n\n{}\n\n```text\n{}\n```\n\n", escaped(&about), usage.trim()).expect("text");
    let arguments = command.get_arguments().filter(|arg| arg.get_id() != "help");
    let rows: Vec<Vec<String>> = arguments
        .map(|arg| {
            let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
            let values: Vec<String> =
                arg.get_possible_values().iter().map(|value| code(value.get_name())).collect();
            let values = if values.is_empty() { String::new() } else { format!(": {}", values.join(", ")) };
            let required = if arg.is_required_set() { "yes" } else { "no" };
            vec![written(arg), required.to_owned(), help + &values]
        })
        .collect();
    if !rows.is_empty() {
        page.push_str(&table(&["argument", "required", "meaning"], rows));
    }
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if let Some((heading, lines)) = examples.split_once('\n') {
        write!(page, "{heading}\n\n```text\n{}\n```\n\n", lines.replace("\n  ", "\n").trim_start())
            .expect("text");
    }
}

#[test]
fn the_page_is_up_to_date() {
    let mut command = examples::added(Arguments::command(), "crownlabs");
    command.build();
    let mut page = format!(
        "# Command line\n\n{HEADER}\n\n{}\n\n\
         `crownlabs man FOLDER` writes the same as man pages. Linked as `kubectl-crownlabs` in the `PATH`, it is a plugin: \
         `kubectl crownlabs why INSTANCE -n NAMESPACE`. `crownlabs --version` prints the versions of this program, of the \
         daemon and of the API server; `--kubeconfig` and `--context` choose the cluster. For macOS and Windows there is everything but `run`. \
         In a terminal, texts for people have colours, unless `NO_COLOR` has a value.\n\n",
        command.get_about().map(|about| escaped(&about.to_string())).unwrap_or_default()
    );
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        section("crownlabs", inner, &mut page);
    }
    page.push_str("## Exit codes\n\n");
    let codes = EXIT_CODES.iter().map(|(code, meaning)| vec![code.to_string(), (*meaning).to_owned()]);
    page.push_str(&table(&["code", "when"], codes));
    check("command-line.md", &format!("{}\n", page.trim_end_matches('\n')));
}

#[test]
fn the_exit_code_of_an_invalid_command_line_is_in_the_table() {
    let error =
        Arguments::command().try_get_matches_from(["crownlabs", "nothing"]).expect_err("no such command");
    assert!(
        EXIT_CODES.iter().any(|(code, _)| i32::from(*code) == error.exit_code()),
        "{}",
        error.exit_code()
    );
}

#[test]
fn lists_of_commands_fit_into_80_columns() {
    fn check(command: &Command) {
        let longest = command.get_subcommands().map(|inner| inner.get_name().len()).max().unwrap_or_default();
        for inner in command.get_subcommands() {
            let about = inner.get_about().expect("a summary").to_string();
            assert!("  ".len() + longest + "  ".len() + about.len() <= 80, "{}: {about}", inner.get_name());
            check(inner);
        }
    }
    check(&Arguments::command());
}

#[test]
fn help_is_plain_text() {
    fn check(command: &Command) {
        let help = command.clone().render_long_help().to_string();
        assert!(
            !help.contains('`'),
            "{}: a terminal shows backticks as they are: {help}",
            command.get_name()
        );
        command.get_subcommands().for_each(check);
    }
    check(&examples::added(Arguments::command(), "crownlabs"));
}
