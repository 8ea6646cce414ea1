//! The texts of the page of a console.

use crate::controllers::dashboard::texts::declare::catalogue;
use crate::controllers::dashboard::texts::template::Template;

catalogue! {
    /// The page of a console.
    pub struct ConsoleTexts;
    String:
        absent, no_scripts, take_over, scale, view_only, enter, leave, layout, text, text_hint, type_it, paste,
        typed, pasted, too_long, invalid;
    Template: screen;
}
