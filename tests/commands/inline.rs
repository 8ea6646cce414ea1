//! The commands outside of blocks: in sentences and table cells of the documents, in messages of the daemon, and in the
//! notes, values and alerts of the chart. They are between backquotes and begin with a program of [`PROGRAMS`]; in the
//! notes, they may also be lines of their own.
//!
//! Each of them
//!
//! - is a part of a line of a block: the line has all of its words (see [`words`]);
//! - or is `make`, with a target of the Makefile and variables that are read;
//! - or has a row in [`NOT_RUN`];
//! - or is a part of another of these commands;
//! - or is run as it is written, in the scene [`SCENE`]. The name of a sub-command, such as `helm upgrade`, is run with
//!   `--help`.

use std::fs;
use std::path::Path;

use crate::documents::{Block, Task, all, documents, files_below, project, without_blocks};
use crate::scenes::{Play, SCENES};

/// The scene of the commands that are run.
pub const SCENE: &str = "sentences";

/// The programs whose commands are checked. Paths that begin with `./` are programs, too.
const PROGRAMS: [&str; 33] = [
    "buildah",
    "cargo",
    "cloud-init",
    "cosign",
    "crownlabs",
    "curl",
    "dig",
    "docker",
    "etcdctl",
    "gh",
    "git",
    "helm",
    "ip",
    "jq",
    "kind",
    "kubectl",
    "make",
    "mutt",
    "npm",
    "openssl",
    "pip",
    "podman",
    "prometheus",
    "promtool",
    "python3",
    "rustup",
    "scp",
    "ssh",
    "ssh-keygen",
    "ssh-keyscan",
    "sudo",
    "systemctl",
    "virtctl",
];

/// The commands that are not run: how they begin, and the reason.
pub const NOT_RUN: [(&str, &str); 19] = [
    ("./images/pin.sh ", "it changes files of the repository: tests/release/faults.py runs it on a copy"),
    ("cargo bench ", "it measures for minutes: `make bench` runs it"),
    ("cargo build --release ", "`make ship-test` makes the release build"),
    ("cargo deny", "`make lint` runs it"),
    ("cargo install cargo-fuzz", "it downloads and builds a program"),
    ("cargo mutants", "it takes hours"),
    ("cargo test --test ", "`make test` runs these tests"),
    ("cloud-init ", "it runs in a virtual machine, which is simulated"),
    ("curl -fsS ", "the servers are examples"),
    ("dig ", "the names are examples"),
    ("etcdctl ", "the test's control plane does not have this program of etcd"),
    ("ip link delete", "it is for the links of a node"),
    ("kubectl get backups ", "Velero is no part of the tests"),
    ("kubectl krew ", "it installs a published release"),
    ("mutt ", "it is a mail program for a terminal"),
    ("openssl s_client ", "the server is an example"),
    ("ssh ", "the servers are examples: tests/integration/bastion logs in to one"),
    ("ssh-keyscan ", "the server is an example"),
    ("virtctl ", "virtual machines are simulated"),
];

/// A command outside of blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Inline {
    /// The file, below the folder of the project.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
    /// The command, in one line.
    pub text: String,
}

/// The commands outside of blocks, by what happens to them. Each text is in it once.
#[derive(Debug, Default)]
pub struct Sorted {
    /// The number of commands that are parts of others, or `make`.
    pub covered: usize,
    /// Those that are run.
    pub run: Vec<Inline>,
    /// Those that are not run, with the reason.
    pub not_run: Vec<(Inline, &'static str)>,
    /// Errors in the commands.
    pub faults: Vec<String>,
}

/// The commands of all files.
pub fn of_the_repository() -> Vec<Inline> {
    let others = ["CHANGELOG.md", "SECURITY.md", "manifests/chart/values.yaml"].map(str::to_owned);
    let templates = ["NOTES.txt", "_alerts.tpl"].map(|name| format!("manifests/chart/templates/{name}"));
    let mut code = files_below("src", "rs");
    code.retain(|file| !file.contains("/tests"));
    code.sort();
    let files = documents().into_iter().chain(others).chain(templates).chain(code);
    let read = |file: String| inline(&file, &fs::read_to_string(project().join(&file)).expect("a file"));
    files.flat_map(read).collect()
}

/// The commands in a file.
pub fn inline(file: &str, text: &str) -> Vec<Inline> {
    let has_extension = |wanted| Path::new(file).extension().is_some_and(|extension| extension == wanted);
    let text = if has_extension("md") {
        without_blocks(text)
    } else if has_extension("rs") {
        let without_comments =
            text.lines().map(|line| if line.trim_start().starts_with("//") { "" } else { line });
        let lines: Vec<&str> = without_comments.collect();
        with_placeholders(&lines.join("\n").replace("\\\n", "\n"), "{", "}")
    } else {
        with_placeholders(text, "{{", "}}")
    };
    let mut found = Vec::new();
    for (at, _) in text.match_indices('`') {
        let rest = &text[at + 1..];
        let code = rest.split('`').next().unwrap_or_default();
        found.push((at, code));
    }
    if has_extension("txt") {
        let lines = text.lines().scan(0, |begin, line| {
            let at = *begin;
            *begin += line.len() + 1;
            Some((at, line))
        });
        found.extend(lines.filter(|(_, line)| line.starts_with("  ")));
    }
    let commands = found.into_iter().filter(|(_, code)| is_command(code));
    let place = |at: usize| text[..at].matches('\n').count() + 1;
    commands
        .map(|(at, code)| Inline { file: file.to_owned(), line: place(at), text: in_one_line(code) })
        .collect()
}

/// The text with `…` in place of the names that a format string fills in between `begin` and `end`, or of the actions
/// of a template.
fn with_placeholders(text: &str, begin: &str, end: &str) -> String {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(begin) {
        filled.push_str(before);
        let is_name = |name: &str| name.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_');
        match after.split_once(end) {
            Some((name, after)) if is_name(name) || begin == "{{" => {
                // The following text keeps its line.
                filled.extend(std::iter::once('…').chain(name.chars().filter(|sign| *sign == '\n')));
                rest = after;
            }
            _ => {
                filled.push_str(begin);
                rest = after;
            }
        }
    }
    filled + rest
}

fn in_one_line(code: &str) -> String {
    // In a table cell, `|` is written as `\|`.
    code.split_whitespace().collect::<Vec<_>>().join(" ").replace("\\|", "|")
}

/// Whether it is a program with an argument; variables may come first.
fn is_command(code: &str) -> bool {
    let mut words = code.split_whitespace().skip_while(|word| is_variable(word));
    let program = words.next().unwrap_or_default();
    (PROGRAMS.contains(&program) || program.starts_with("./")) && words.next().is_some()
}

/// Whether a word sets a variable.
fn is_variable(word: &str) -> bool {
    let is_name = |name: &str| name.chars().all(|sign| sign.is_ascii_uppercase() || sign == '_');
    word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && is_name(name))
}

/// The words of a command: without its comment and quotation marks, with the short forms of flags that are often written
/// in full.
pub fn words(line: &str) -> Vec<&str> {
    let words = line.split_whitespace().take_while(|word| !word.starts_with('#'));
    let bare = words.map(|word| word.trim_matches(['\'', '"', ';']).trim_end_matches('/'));
    let short = bare.map(|word| match word {
        "--all-namespaces" => "-A",
        "--namespace" => "-n",
        _ => word,
    });
    short.skip_while(|word| is_variable(word)).collect()
}

/// Whether a word stands for another: `NAME`, `NAMESPACE/INSTANCE`, `<name>`, or a word with `…`.
fn is_placeholder(word: &str) -> bool {
    let is_capital = |sign: char| sign.is_ascii_uppercase() || sign == '/' || sign == '_';
    word.contains(['…', '<']) || (word.len() > 1 && word.chars().all(is_capital))
}

/// Whether a line has the program of a command, and after it all words of the command, except for placeholders.
pub fn is_part_of(command: &[&str], line: &[&str]) -> bool {
    let Some((program, others)) = command.split_first() else { return false };
    let Some(at) = line.iter().position(|word| word == program) else { return false };
    others.iter().all(|word| is_placeholder(word) || line[at..].contains(word))
}

/// The lines of the blocks of commands.
pub fn lines(blocks: &[Block]) -> Vec<String> {
    let commands = blocks.iter().filter(|block| block.task.is_some()).map(Block::commands);
    let joined = commands.map(|commands| commands.replace("\\\n", " "));
    joined.flat_map(|commands| commands.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Sorts commands. `lines` are those of the blocks; `read_by_make` is the Makefile and the programs that it starts.
pub fn sorted(commands: &[Inline], lines: &[String], read_by_make: &str) -> Sorted {
    let mut sorted = Sorted::default();
    let lines: Vec<Vec<&str>> = lines.iter().map(|line| words(line)).collect();
    let all: Vec<Vec<&str>> = commands.iter().map(|command| words(&command.text)).collect();
    for (index, (command, own)) in commands.iter().zip(&all).enumerate() {
        if commands[..index].iter().any(|before| before.text == command.text) {
            continue;
        }
        let bare = own.join(" ");
        let row = NOT_RUN.iter().find(|(begin, _)| bare.starts_with(*begin));
        // Of two commands with the same words, the first is run.
        let has_more = |(at, other): (usize, &Vec<&str>)| {
            (other.len() > own.len() || at < index) && is_part_of(own, other)
        };
        if bare.starts_with("make ") {
            let fault = fault_of_make(own, read_by_make);
            sorted.faults.extend(fault.map(|fault| format!("{}:{}: {fault}", command.file, command.line)));
            sorted.covered += 1;
        } else if lines.iter().any(|line| is_part_of(own, line)) {
            sorted.covered += 1;
        } else if let Some(&(_, reason)) = row {
            sorted.not_run.push((command.clone(), reason));
        } else if all.iter().enumerate().any(has_more) {
            sorted.covered += 1;
        } else {
            sorted.run.push(command.clone());
        }
    }
    sorted
}

/// The error in a command of make.
fn fault_of_make(words: &[&str], read_by_make: &str) -> Option<String> {
    let arguments = words[1..].iter().take_while(|word| **word != "|");
    arguments.filter(|word| !is_placeholder(word)).find_map(|word| {
        if let Some((name, _)) = word.split_once('=') {
            let forms = [format!("\"{name}\""), format!("$({name})"), format!("${{{name}:-")];
            let is_read = forms.iter().any(|form| read_by_make.contains(form));
            return (!is_read).then(|| format!("make reads no variable {name}"));
        }
        let is_target = |line: &str| line.split_once(':').is_some_and(|(target, _)| target == *word);
        (!read_by_make.lines().any(is_target)).then(|| format!("the Makefile has no target {word}"))
    })
}

/// The Makefile, and the programs of the demo, which read most variables.
pub fn read_by_make() -> String {
    let programs = [files_below("examples/demo", "rs"), files_below("examples/demo", "sh")].concat();
    let files = std::iter::once("Makefile".to_owned()).chain(programs);
    let texts = files.map(|file| fs::read_to_string(project().join(file)).expect("a file"));
    texts.collect::<Vec<_>>().join("\n")
}

/// The commands of the repository, sorted.
pub fn sorted_commands() -> Sorted {
    sorted(&of_the_repository(), &lines(&all()), &read_by_make())
}

/// The commands that are run, as blocks.
pub fn play() -> Play {
    let scene = SCENES.iter().find(|scene| scene.name == SCENE).expect("the scene");
    let block = |command: Inline| Block {
        document: command.file,
        line: command.line,
        language: "sh".to_owned(),
        text: if is_name(&command.text) { command.text + " --help\n" } else { command.text + "\n" },
        task: Some(Task::Run { scene: SCENE.to_owned(), continued: true }),
    };
    Play { scene, blocks: sorted_commands().run.into_iter().map(block).collect() }
}

/// Whether a command is the name of a sub-command.
fn is_name(command: &str) -> bool {
    let [_, name] = words(command)[..] else { return false };
    name.starts_with(|sign: char| sign.is_ascii_lowercase())
}
