//! The texts of the page of exams.

use crate::controllers::dashboard::exams::facts::{Check, Upload};
use crate::controllers::dashboard::texts::declare::catalogue;
use crate::controllers::dashboard::texts::template::{Plural, Table};

catalogue! {
    /// The page of exams.
    pub struct ExamTexts;
    String: about, empty, caption, check, left, upload, receipt, ended, no_receipt, mailed, export;
    Plural: attempts;
    Table<Check>: check_is;
    Table<Upload>: upload_is;
}
