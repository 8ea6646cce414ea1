//! Files in another encoding than UTF-8.

use std::fs;

use super::{await_line, failed_command};
use crate::daemon::{Daemon, Options, config};
use crate::lab::Lab;
use cluster::config::only;

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(bytes).collect()
}

#[test]
fn a_configuration_in_another_encoding_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("crownlabs.yaml");
    let shown = path.display().to_string();
    let text = config("messages", "");
    let begin = format!("the configuration file {shown} cannot be read: ");
    let utf16_problem = "it is encoded in UTF-16; save the file as UTF-8\n";
    for (content, expected) in [
        (utf16(&format!("\u{feff}{text}"), u16::to_le_bytes), utf16_problem),
        (utf16(&format!("\u{feff}{text}"), u16::to_be_bytes), utf16_problem),
        (utf16(&text, u16::to_le_bytes), utf16_problem),
        // The comment is in Latin-1.
        (
            [&b"# caf\xe9\n"[..], text.as_bytes()].concat(),
            "line 1 is not encoded in UTF-8; save the file as UTF-8\n",
        ),
    ] {
        fs::write(&path, content).expect("written");
        for arguments in [&["config", "check", &shown][..], &["run", "--config", &shown]] {
            assert_eq!(failed_command(arguments), format!("{begin}{expected}"), "{arguments:?}");
        }
    }
    fs::remove_file(&path).expect("removed");
    let missing = "it does not exist; create it, or correct the path\n";
    assert_eq!(failed_command(&["config", "check", &shown]), format!("{begin}{missing}"));
    let here = folder.path().display().to_string();
    let error = failed_command(&["config", "check", &here]);
    assert!(error.ends_with("cannot be read: it is a folder; expected the path of a file\n"), "{error}");
    let values = folder.path().join("values.yaml");
    fs::write(&values, utf16("a: 1\n", u16::to_le_bytes)).expect("written");
    let values = values.display().to_string();
    for arguments in [&["config", "from-values", &values][..], &["plan", "-f", &values]] {
        let error = failed_command(arguments);
        assert!(error.contains(&format!("{values} cannot be read: {}", utf16_problem.trim_end())), "{error}");
    }
}

#[test]
fn a_configuration_with_the_mark_of_utf_8_is_used_and_a_change_to_utf_16_is_refused() {
    let lab = Lab::shared();
    let loops = only(&[("template", "")]);
    let kubeconfig = lab.service_account();
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "messages", config: &loops });
    let file = daemon.config_file();
    let text = fs::read_to_string(&file).expect("read");
    fs::write(&file, format!("\u{feff}{text}log: {{filter: debug}}\n")).expect("written");
    await_line(&daemon, &["the log filter has changed"]);
    fs::write(&file, utf16(&text, u16::to_le_bytes)).expect("written");
    let problem = format!(
        "--config: {} cannot be read; the previous configuration stays in effect: it is encoded in UTF-16; save the file",
        file.display()
    );
    await_line(&daemon, &["WARN", &problem]);
}
