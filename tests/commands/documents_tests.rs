//! Errors in a document are found.

use crate::documents::{Block, Task, UNNAMED, read};

fn faults(text: &str) -> Vec<String> {
    read("a.md", text).expect_err("a fault")
}

fn only(text: &str) -> Block {
    let blocks = read("a.md", text).expect("a document");
    let [block] = <[Block; 1]>::try_from(blocks).expect("one block");
    block
}

#[test]
fn a_block_has_the_task_of_the_comment_above_it() {
    let run = |scene: &str, continued| Some(Task::Run { scene: scene.to_owned(), continued });
    let block = only("Text:\n\n<!-- commands: cluster -->\n\n```sh\nls\n```\n");
    assert_eq!((block.line, block.text.as_str(), block.task), (5, "ls\n", run("cluster", false)));
    let block =
        only("1. <!-- no -->\n   <!-- commands: a, continued -->\n   ```bash\n   if\n     x\n   ```\n");
    assert_eq!((block.text.as_str(), block.task), ("if\n  x\n", run("a", true)));
    let block = only("<!-- commands: not run: needs a telescope -->\n~~~~sh\n```\n~~~\n~~~~\n");
    assert_eq!(
        (block.text.as_str(), block.task),
        ("```\n~~~\n", Some(Task::NotRun("needs a telescope".to_owned())))
    );
    let block = only("<!-- commands: a -->\n```console\n$ ls | wc\n3\n$ true\n```\n");
    assert_eq!(block.commands(), "ls | wc\ntrue\n");
    assert_eq!(only("``` yaml\na: 1\n```\n").task, None);
}

#[test]
fn a_block_without_a_comment_is_an_error_with_a_hint() {
    assert_eq!(faults("# A\n\n```sh\nls\n```\n"), [format!("a.md:3: {UNNAMED}")]);
    // A comment applies to one block, the next one.
    let twice = faults("<!-- commands: a -->\n```sh\nls\n```\n\n```sh\nls\n```\n");
    assert_eq!(twice, [format!("a.md:6: {UNNAMED}")]);
    let between = faults("<!-- commands: a -->\nText.\n```sh\nls\n```\n");
    assert_eq!(between.len(), 2, "{between:?}");
}

#[test]
fn invalid_comments_and_blocks_are_errors() {
    for (text, what) in [
        ("<!-- commands: not run -->\n```sh\n```\n", "a.md:1: say why nothing runs"),
        ("<!-- commands: not run: no -->\n```sh\n```\n", "a.md:1: say why nothing runs"),
        ("<!-- commands: a, b -->\n```sh\n```\n", "a.md:1: \" b\" is not known"),
        ("<!-- commands: a\n-->\n```sh\n```\n", "a.md:1: "),
        ("<!-- commands: a -->\n```yaml\n```\n", "a.md:1: the block below has no commands"),
        ("<!-- commands: a -->\n", "a.md:1: the comment about commands is not directly above"),
        ("```\nls\n```\n", "a.md:1: the language of the block is \"\""),
        ("```shell\nls\n```\n", "a.md:1: the language of the block is \"shell\""),
        ("<!-- commands: a -->\n```sh\nls\n", "a.md:2: the block has no end"),
    ] {
        let found = faults(text);
        assert!(found.iter().any(|fault| fault.starts_with(what)), "{text:?}: {found:?}");
    }
}
