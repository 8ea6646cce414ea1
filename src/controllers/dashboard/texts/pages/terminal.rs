//! The texts of the page of a terminal.

use crate::controllers::dashboard::texts::declare::catalogue;

catalogue! {
    /// The page of a terminal.
    pub struct TerminalTexts;
    String: absent, no_scripts, off, input, much, keys, left, up, down, right, reader, hint, ended, again, connecting, open;
}
