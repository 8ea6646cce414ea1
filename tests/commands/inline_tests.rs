//! Commands outside of blocks are found, and errors in them, too.

use crate::inline::{NOT_RUN, Sorted, inline, is_part_of, of_the_repository, sorted, sorted_commands, words};

#[test]
fn every_command_outside_of_blocks_is_run_or_has_a_reason_why_not() {
    let commands = of_the_repository();
    let Sorted { covered, run, not_run, faults } = sorted_commands();
    for command in &run {
        println!("{}:{}: `{}` is run", command.file, command.line, command.text);
    }
    for (command, reason) in &not_run {
        println!("{}:{}: `{}` is not run: {reason}", command.file, command.line, command.text);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let is_used = |begin: &str| not_run.iter().any(|(command, _)| command.text.contains(begin));
    let unused: Vec<&str> = NOT_RUN.iter().map(|(begin, _)| *begin).filter(|begin| !is_used(begin)).collect();
    assert_eq!(unused, Vec::<&str>::new(), "rows of NOT_RUN without a command");
    for file in
        ["README.md", "docs/operating.md", "manifests/chart/templates/NOTES.txt", "src/config/instance.rs"]
    {
        assert!(commands.iter().any(|command| command.file == file), "{file} has commands");
    }
    assert!(covered > 50 && run.len() > 30 && not_run.len() < run.len(), "{covered}, {run:?}, {not_run:?}");
}

fn found(file: &str, text: &str) -> Vec<(usize, String)> {
    inline(file, text).into_iter().map(|command| (command.line, command.text)).collect()
}

#[test]
fn commands_are_found_in_sentences_cells_messages_and_notes() {
    let at = |line: usize, text: &str| (line, text.to_owned());
    let page = "Run `kubectl get\n  pods -A`, not `kubectl` or `get pods`.\n```sh\n`make inside`\n```\n| `make x \\| jq .` |\n";
    assert_eq!(found("a.md", page), [at(1, "kubectl get pods -A"), at(6, "make x | jq .")]);
    let page = "`A=b ./run it`, `KEY=\"--values FILE\"`, `./run`, `https://make it`\n";
    assert_eq!(found("a.md", page), [at(1, "A=b ./run it")]);
    let code = "// `make comment`\n/// `make doc`\nlet a = format!(\"run `helm \\\n    upgrade {name}`; {{\\\"a\\\": 1}}\");\n";
    assert_eq!(found("a.rs", code), [at(3, "helm upgrade …")]);
    let notes = "{{- if\n .a }}\nList them:\n  kubectl get pods -n {{ .Release.Namespace }}\n  or not\nAfter `helm\nuninstall`.\n";
    assert_eq!(found("a/NOTES.txt", notes), [at(6, "helm uninstall"), at(4, "kubectl get pods -n …")]);
}

#[test]
fn a_command_is_a_part_of_a_line_with_all_of_its_words() {
    let line = "until kubectl get pods -n labs --show-labels | jq '.items'; do sleep 5; done   # all of them";
    for part in [
        "kubectl get pods",
        "kubectl get pods --namespace NAME",
        "kubectl get … -n <namespace>",
        "kubectl -n labs get pods",
        "kubectl get pods | jq .items",
    ] {
        assert!(is_part_of(&words(part), &words(line)), "{part}");
    }
    for other in [
        "kubectl get pod",
        "kubectl get pods -o wide",
        "kubectl get pods -A",
        "helm get pods",
        "jq kubectl",
        "kubectl of them",
    ] {
        assert!(!is_part_of(&words(other), &words(line)), "{other}");
    }
}

#[test]
fn a_command_that_no_block_has_is_run_unless_it_has_a_row() {
    let page = "`kubectl get pods`, `kubectl get pdos`, `kubectl get pdos -A`, `ssh -J a b`, `kubectl get pdos -A`, `helm -A x`, \
                `helm x -A`";
    let sorted = sorted(&inline("a.md", page), &["kubectl get pods -A".to_owned()], "");
    let run: Vec<&str> = sorted.run.iter().map(|command| command.text.as_str()).collect();
    assert_eq!(run, ["kubectl get pdos -A", "helm -A x"]);
    assert_eq!(sorted.not_run.len(), 1);
    assert_eq!((sorted.covered, sorted.faults), (3, Vec::new()));
}

#[test]
fn targets_and_variables_that_make_does_not_have_are_errors() {
    let makefile = "build: $(LIVE) ## C=1\n\t@$(if $(A),x)\nis_wanted(\"B\") ${D:-}\n";
    let page = "`make build A=1 B=1 D=1 | jq .`, `make TARGET`\n`make biuld`\n`make build C=1`";
    assert_eq!(
        sorted(&inline("a.md", page), &[], makefile).faults,
        ["a.md:2: the Makefile has no target biuld", "a.md:3: make reads no variable C"]
    );
}
