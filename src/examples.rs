//! The examples in the help texts, man pages and reference of the command line.

use std::fmt::Write;

use clap::Command;

/// An example: its purpose, and the command, with `{}` for the name of the program.
type Example = (&'static str, &'static str);

/// The examples of each sub-command.
const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "run",
        &[(
            "Run the loops outside of the cluster",
            "{} run --config crownlabs.yaml --kubeconfig admin.kubeconfig",
        )],
    ),
    (
        "plan",
        &[
            ("Print the objects for the custom resources in a folder", "{} plan -f manifests/samples"),
            (
                "Print the objects for an Instance whose Template and Tenant are in the cluster",
                "{} plan -f instance.yaml -n tenant-ada-rossi --context labs",
            ),
            (
                "Print the changes that the daemon would make in a cluster with another configuration",
                "{} plan --context labs --config crownlabs.yaml",
            ),
        ],
    ),
    (
        "why",
        &[
            ("Explain an Instance", "{} why desktop-1 -n tenant-ada-rossi"),
            ("Print the same for a program", "{} why tenant-ada-rossi/desktop-1 -o json"),
            ("Check in a script whether it is ready", "{} why tenant-ada-rossi/desktop-1 --exit-code"),
        ],
    ),
    (
        "status",
        &[
            ("Show the state of the installation", "{} status"),
            ("Print all of it for a program", "{} status --all -o json"),
            ("List the Instances of a course", "{} status netlab"),
        ],
    ),
    (
        "class",
        &[
            ("Start a machine for each student of a course", "{} class start netlab --template desktop"),
            ("Check first what would be stopped", "{} class stop netlab --dry-run"),
            (
                "Collect the work of some students, with the result as a table for a spreadsheet",
                "{} class collect exams --template exam-1 --people students.csv -o csv > result.csv",
            ),
        ],
    ),
    (
        "release",
        &[(
            "Print the objects that would be released",
            "{} release --selector crownlabs.polito.it/operator-selector=staging --dry-run",
        )],
    ),
    (
        "takeover check",
        &[(
            "Check a cluster with the account of an administrator",
            "{} takeover check --config crownlabs.yaml --kubeconfig admin.kubeconfig",
        )],
    ),
    ("crd", &[("Install the CRDs", "{} crd | kubectl apply --server-side -f -")]),
    ("config default", &[("Begin a configuration file", "{} config default > crownlabs.yaml")]),
    (
        "config check",
        &[
            ("Check a file", "{} config check crownlabs.yaml"),
            (
                "Also check the servers in it, and a cluster",
                "{} config check crownlabs.yaml --connect --context labs",
            ),
        ],
    ),
    ("config schema", &[("Write the schema for an editor", "{} config schema > crownlabs.schema.json")]),
    (
        "config from-values",
        &[
            (
                "Convert the values of the release labs in the namespace labs",
                "helm get values labs -n labs --all -o yaml | {} config from-values - -n labs > values.yaml",
            ),
            (
                "Write the configuration without the chart",
                "{} config from-values operators-values.yaml -n labs --configuration > crownlabs.yaml",
            ),
        ],
    ),
    ("man", &[("Install the man pages", "{} man /usr/local/share/man/man1")]),
    (
        "completion",
        &[
            ("Load the completion in this shell", "source <({} completion bash)"),
            ("Write it to a file", "{} completion fish > ~/.config/fish/completions/crownlabs.fish"),
        ],
    ),
];

/// Adds the examples to the help texts of all sub-commands.
pub fn added(command: Command, program: &str) -> Command {
    below("", command, program)
}

fn below(path: &str, command: Command, program: &str) -> Command {
    let command = command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        below(path.trim_start(), inner, program)
    });
    match EXAMPLES.iter().find(|(of, _)| *of == path) {
        Some((_, examples)) => command.after_help(text(examples, program)),
        None => command,
    }
}

fn text(examples: &[Example], program: &str) -> String {
    let mut text = "Examples:".to_owned();
    for (index, (purpose, line)) in examples.iter().enumerate() {
        let gap = if index == 0 { "\n" } else { "\n\n" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{gap}  # {purpose}\n  {}", line.replace("{}", program));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    use crate::Arguments;

    /// The paths of the commands that have no sub-commands.
    fn leaves(path: &str, command: &Command, found: &mut Vec<String>) {
        if !command.has_subcommands() {
            found.push(path.trim_start().to_owned());
        }
        for inner in command.get_subcommands() {
            leaves(&format!("{path} {}", inner.get_name()), inner, found);
        }
    }

    /// The words of the program's part of an example.
    fn words(line: &str) -> Vec<&str> {
        let (_, arguments) = line.split_once("{} ").expect("the program");
        let arguments = arguments.split(['|', '>', ')']).next().unwrap_or_default();
        std::iter::once("crownlabs").chain(arguments.split_whitespace()).collect()
    }

    #[test]
    fn each_subcommand_has_examples_and_each_example_is_of_a_subcommand() {
        let mut commands = Vec::new();
        leaves("", &Arguments::command(), &mut commands);
        let mut with_examples: Vec<&str> = EXAMPLES.iter().map(|(path, _)| *path).collect();
        commands.sort_unstable();
        with_examples.sort_unstable();
        // The commands for macOS and Windows do not include `run`.
        with_examples.retain(|path| cfg!(feature = "daemon") || *path != "run");
        assert_eq!(commands, with_examples);
        assert!(EXAMPLES.iter().all(|(_, examples)| !examples.is_empty()));
    }

    #[test]
    fn each_example_is_a_valid_command_line_of_its_subcommand() {
        let is_here = |path: &str| cfg!(feature = "daemon") || path != "run";
        for (path, examples) in EXAMPLES.iter().filter(|&&(path, _)| is_here(path)) {
            for (_, line) in *examples {
                let words = words(line);
                assert!(words[1..].join(" ").starts_with(path), "{path}: {line}");
                let parsed = Arguments::command().try_get_matches_from(words);
                assert_eq!(parsed.err().map(|error| error.to_string()), None, "{line}");
            }
        }
    }

    #[test]
    fn help_shows_the_examples_with_the_name_of_the_program() {
        for program in ["crownlabs", "kubectl crownlabs"] {
            let mut command = added(Arguments::command(), program);
            let check = command.find_subcommand_mut("config").expect("it exists");
            let check = check.find_subcommand_mut("check").expect("it exists");
            let expected = format!(
                "Examples:\n  # Check a file\n  {program} config check crownlabs.yaml\n\n  # Also check the servers in \
                 it, and a cluster\n  {program} config check crownlabs.yaml --connect --context labs"
            );
            for help in [check.render_help(), check.render_long_help()] {
                assert!(help.to_string().trim_end().ends_with(&expected), "{help}");
            }
        }
    }
}
