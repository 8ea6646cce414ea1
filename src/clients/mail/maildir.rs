//! Mails as files in a Maildir folder. They are written in `tmp` and then moved to `new`, so that a reader never sees
//! an incomplete mail. The name of a file is derived from the key of the mail, so that a mail is in the folder once,
//! even if it is sent several times.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use parking_lot::Mutex;

use super::error::MailError;

/// A Maildir folder.
pub(super) struct Maildir {
    folder: PathBuf,
    /// Held while a file is written, because two attempts for a mail write the same file.
    writing: Mutex<()>,
}

impl Maildir {
    /// Opens a folder, and creates it if necessary.
    pub(super) fn new(folder: &str) -> anyhow::Result<Self> {
        let folder = PathBuf::from(folder);
        for part in ["tmp", "new", "cur"] {
            let path = folder.join(part);
            let shown = path.display();
            fs::create_dir_all(&path)
                .map_err(|error| anyhow!("integrations.mail.folder: {shown} cannot be used: {error}"))?;
        }
        Ok(Self { folder, writing: Mutex::new(()) })
    }

    /// Writes a mail unless it exists. This may take as long as the file system needs.
    pub(super) fn deliver(&self, name: &str, message: &[u8]) -> Result<(), MailError> {
        let _writing = self.writing.lock();
        let unusable = |path: &Path| {
            let path = path.to_owned();
            move |error: io::Error| MailError::Folder { path, problem: error.to_string() }
        };
        let (temporary, new) = (self.folder.join("tmp").join(name), self.folder.join("new").join(name));
        if new.exists() || self.was_read(name).map_err(unusable(&self.folder))? {
            return Ok(());
        }
        write(&temporary, message).map_err(unusable(&temporary))?;
        fs::rename(&temporary, &new).map_err(unusable(&new))?;
        File::open(self.folder.join("new")).and_then(|folder| folder.sync_all()).map_err(unusable(&new))
    }

    /// Whether a reader of the folder has moved the mail to `cur`. The reader appends `:2,` and flags to its name.
    fn was_read(&self, name: &str) -> io::Result<bool> {
        for entry in fs::read_dir(self.folder.join("cur"))? {
            let file = entry?.file_name();
            if file.to_string_lossy().split(':').next() == Some(name) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn write(path: &Path, message: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(message)?;
    file.sync_all()
}
