//! The blocks of the documents, and the comment above each.
//!
//! The comment is invisible in a rendered page. It has one of these forms:
//!
//! - `<!-- commands: SCENE -->`: the block runs in this scene, from its initial state.
//! - `<!-- commands: SCENE, continued -->`: the block continues after the previous block: in the same shell, folder and
//!   cluster.
//! - `<!-- commands: not run: REASON -->`: the block is not run.

use std::fs;
use std::path::{Path, PathBuf};

/// The languages of blocks whose lines are commands; in `console`, only lines that begin with `$ `.
const COMMANDS: [&str; 3] = ["sh", "bash", "console"];
/// The languages of blocks without commands.
const OTHERS: [&str; 10] =
    ["yaml", "json", "text", "mermaid", "rust", "toml", "promql", "diff", "html", "ini"];

/// A block of a document, between two fences.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The document, below the folder of the project.
    pub document: String,
    /// The line of the first fence, from 1.
    pub line: usize,
    /// Its language.
    pub language: String,
    /// The text between the fences, without their indentation.
    pub text: String,
    /// The task for the block; a block without commands has none.
    pub task: Option<Task>,
}

/// The content of the comment above a block.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// The block is run.
    Run { scene: String, continued: bool },
    /// The block is not run, for this reason.
    NotRun(String),
}

impl Block {
    /// The place of the block, for messages.
    pub fn place(&self) -> String {
        format!("{}:{}", self.document, self.line)
    }

    /// Whether its lines are commands.
    pub fn is_commands(&self) -> bool {
        COMMANDS.contains(&self.language.as_str())
    }

    /// The commands of the block.
    pub fn commands(&self) -> String {
        if self.language != "console" {
            return self.text.clone();
        }
        let typed: Vec<&str> = self.text.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
        typed.join("\n") + "\n"
    }
}

/// The folder of the project.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// The documents for users, below the folder of the project.
pub fn documents() -> Vec<String> {
    let mut found = ["README.md", "CONTRIBUTING.md", "manifests/chart/README.md"].map(str::to_owned).to_vec();
    found.extend(files_below("docs", "md"));
    found.sort();
    found
}

/// The files in a folder of the project and in its sub-folders, with this extension.
pub fn files_below(folder: &str, extension: &str) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::from(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(project().join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|of_file| of_file == extension) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// All blocks of the documents, in their order. Panics with a list of all errors in them.
pub fn all() -> Vec<Block> {
    let (mut blocks, mut faults) = (Vec::new(), Vec::new());
    for document in documents() {
        let text = fs::read_to_string(project().join(&document)).expect("a document");
        match read(&document, &text) {
            Ok(read) => blocks.extend(read),
            Err(found) => faults.extend(found),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    blocks
}

/// Reads a document. Returns its blocks, or its errors.
pub fn read(document: &str, text: &str) -> Result<Vec<Block>, Vec<String>> {
    let mut reader = Reader { document, blocks: Vec::new(), faults: Vec::new(), note: None };
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(fence) = Fence::opens(line) else {
            reader.prose(number + 1, line);
            continue;
        };
        let mut inside = String::new();
        let mut is_closed = false;
        for (_, line) in lines.by_ref() {
            if fence.closes(line) {
                is_closed = true;
                break;
            }
            let blank = line.len() - line.trim_start().len();
            inside.push_str(&line[blank.min(fence.indentation)..]);
            inside.push('\n');
        }
        reader.block(number + 1, &fence, inside, is_closed);
    }
    reader.unused();
    if reader.faults.is_empty() { Ok(reader.blocks) } else { Err(reader.faults) }
}

/// A document with empty lines in place of its blocks.
pub fn without_blocks(text: &str) -> String {
    let mut fence: Option<Fence<'_>> = None;
    let mut rest = String::new();
    for line in text.lines() {
        if fence.as_ref().is_some_and(|fence| fence.closes(line)) {
            fence = None;
        } else if fence.is_none() {
            fence = Fence::opens(line);
            if fence.is_none() {
                rest.push_str(line);
            }
        }
        rest.push('\n');
    }
    rest
}

/// The first line of a block.
struct Fence<'a> {
    indentation: usize,
    marks: &'a str,
    language: &'a str,
}

impl<'a> Fence<'a> {
    fn opens(line: &'a str) -> Option<Self> {
        let text = line.trim_start();
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let (marks, rest) = text.split_at(text.len() - text.trim_start_matches(mark).len());
        // Text between backquotes on one line is not a block.
        if marks.len() < 3 || rest.contains('`') {
            return None;
        }
        let language = rest.trim().split([' ', ',', '{']).next().unwrap_or_default();
        Some(Self { indentation: line.len() - text.len(), marks, language })
    }

    fn closes(&self, line: &str) -> bool {
        let text = line.trim();
        text.len() >= self.marks.len()
            && text.starts_with(self.marks)
            && text.chars().all(|mark| self.marks.starts_with(mark))
    }
}

/// A document that is being read.
struct Reader<'a> {
    document: &'a str,
    blocks: Vec<Block>,
    faults: Vec<String>,
    /// The last comment about commands, and its line: no block has followed it yet.
    note: Option<(usize, Result<Task, String>)>,
}

impl Reader<'_> {
    fn fault(&mut self, line: usize, what: &str) {
        self.faults.push(format!("{}:{line}: {what}", self.document));
    }

    /// A line outside of blocks.
    fn prose(&mut self, number: usize, line: &str) {
        let text = line.trim();
        if text.is_empty() {
            return;
        }
        self.unused();
        if let Some(note) = text.strip_prefix("<!-- commands:") {
            self.note = Some((number, task(note)));
        }
    }

    /// Reports a comment that is not followed by a block.
    fn unused(&mut self) {
        if let Some((line, _)) = self.note.take() {
            self.fault(line, "the comment about commands is not directly above a block");
        }
    }

    fn block(&mut self, line: usize, fence: &Fence<'_>, text: String, is_closed: bool) {
        let (document, language) = (self.document.to_owned(), fence.language.to_owned());
        let mut block = Block { document, line, language, text, task: None };
        if !is_closed {
            self.fault(line, "the block has no end");
        }
        let note = self.note.take();
        match (block.is_commands(), note) {
            (true, Some((_, Ok(task)))) => block.task = Some(task),
            (true, Some((at, Err(what)))) => self.fault(at, &what),
            (true, None) => self.fault(line, UNNAMED),
            (false, Some((at, _))) => self.fault(at, "the block below has no commands"),
            (false, None) if !OTHERS.contains(&fence.language) => {
                let known = [&COMMANDS[..], &OTHERS[..]].concat().join(", ");
                self.fault(
                    line,
                    &format!("the language of the block is {:?}: say which of {known} it is", fence.language),
                );
            }
            (false, None) => {}
        }
        self.blocks.push(block);
    }
}

/// The error for a block of commands without a comment.
pub const UNNAMED: &str = "nobody runs these commands. Write one of these lines above the block:
  <!-- commands: SCENE -->             with a scene of tests/commands/scenes.rs: they are run there
  <!-- commands: SCENE, continued -->  they go on where the block before them ended
  <!-- commands: not run: REASON -->   if nothing here can run them";

/// Reads the text after `<!-- commands:`.
fn task(note: &str) -> Result<Task, String> {
    let note = note.trim().strip_suffix("-->").ok_or("the comment does not end in its line")?.trim();
    if let Some(reason) = note.strip_prefix("not run") {
        let reason = reason.trim_start_matches(':').trim();
        // One word is not a reason.
        if reason.split(' ').count() < 3 {
            return Err("say why nothing runs the block: `not run: REASON`".to_owned());
        }
        return Ok(Task::NotRun(reason.to_owned()));
    }
    let (scene, continued) = match note.split_once(',') {
        None => (note, false),
        Some((scene, "continued" | " continued")) => (scene, true),
        Some((_, other)) => return Err(format!("{other:?} is not known here: only `continued` is")),
    };
    Ok(Task::Run { scene: scene.trim().to_owned(), continued })
}
