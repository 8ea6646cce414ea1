//! Files that are read again when they change: the configuration's log filter, and the files named by `…File` keys.
//! Kubernetes replaces mounted ConfigMaps and Secrets within a minute. Reading the files every few seconds costs less
//! than watching folders that are replaced through symbolic links.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::watch;
use tracing::warn;

use crate::config::file::{self, Content, FileError, read};

/// The time between two checks.
const PERIOD: Duration = Duration::from_secs(5);

/// Called with the content of each file.
type Changed = Box<dyn FnMut(&[Content]) + Send>;

/// Files that belong together, with a callback for changes of their content.
pub struct WatchedFile {
    /// The configuration key that names them, or their folder.
    pub key: &'static str,
    paths: Vec<PathBuf>,
    contents: Vec<Content>,
    changed: Changed,
}

impl WatchedFile {
    /// Watches the file that the configuration key `key` names. Reads it now and calls `changed` with its content, and
    /// again after each change.
    pub fn new(key: &'static str, path: PathBuf, mut changed: impl FnMut(&Content) + Send + 'static) -> Self {
        Self::several(key, vec![path], move |contents| contents.iter().for_each(&mut changed))
    }

    /// The same for several files: `changed` is called with the contents of all of them, in their order, when one of
    /// them changes. Files that are replaced together are thus read together.
    pub fn several(
        key: &'static str,
        paths: Vec<PathBuf>,
        changed: impl FnMut(&[Content]) + Send + 'static,
    ) -> Self {
        let mut file = Self { key, paths, contents: Vec::new(), changed: Box::new(changed) };
        file.check();
        file
    }

    /// Reads the files, and reports a change.
    fn check(&mut self) {
        // The files are small and local: reading one takes less time than handing it over to another thread.
        let contents: Vec<Content> = self.paths.iter().map(|path| read(path)).collect();
        if contents != self.contents {
            (self.changed)(&contents);
            self.contents = contents;
        }
    }

    /// Returns the first file that the last check could not read, and the reason.
    pub fn unreadable(&self) -> Option<(&Path, &FileError)> {
        let mut contents = self.paths.iter().zip(&self.contents);
        contents.find_map(|(path, content)| Some((path.as_path(), content.as_ref().err()?)))
    }
}

/// The parsed content of a file; `None` while the file is missing or invalid. Clones share it.
#[derive(Clone)]
pub struct FileCell<T>(Arc<RwLock<Option<T>>>);

impl<T> Default for FileCell<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone + Send + Sync + 'static> FileCell<T> {
    /// Returns the current value.
    pub fn get(&self) -> Option<T> {
        self.0.read().clone()
    }

    /// Watches the file that the configuration key `key` names, and parses its content with `parse`. Content that is
    /// missing or invalid is logged, with the sentence `effect` about the time without a value.
    pub fn watch(
        &self,
        key: &'static str,
        path: &str,
        parse: fn(&[u8]) -> Result<T, String>,
        effect: &'static str,
    ) -> WatchedFile {
        let (cell, path) = (self.clone(), path.to_owned());
        WatchedFile::new(key, PathBuf::from(&path), move |content| {
            let value = parsed(content, parse);
            if let Err(problem) = &value {
                warn!("{key}: {path} cannot be used: {problem}. {effect}");
            }
            *cell.0.write() = value.ok();
        })
    }

    /// Creates a cell with this value.
    #[cfg(test)]
    pub fn holding(value: T) -> Self {
        Self(Arc::new(RwLock::new(Some(value))))
    }
}

/// Parses a content.
fn parsed<T, E: ToString>(content: &Content, parse: impl FnOnce(&[u8]) -> Result<T, E>) -> Result<T, String> {
    let content = content.as_deref().map_err(ToString::to_string)?;
    parse(content).map_err(|error| error.to_string())
}

/// Parses the content of a file with a secret: its text without white space at both ends.
///
/// # Errors
/// When it is not in UTF-8, or has no other characters.
pub fn secret(content: &[u8]) -> Result<&str, String> {
    match file::text(content).map(str::trim) {
        Ok("") => Err(FileError::Empty.to_string()),
        secret => secret.map_err(|error| error.to_string()),
    }
}

/// The reason why a server still waits for a file, in a sentence; `None` once a valid version was read.
pub type Awaited = watch::Receiver<Option<String>>;

/// Watches the file that the configuration key `key` names, which a server needs before it starts. `found` gets each
/// valid value. When a later version cannot be used, the last valid value stays in use.
pub fn needed<T: 'static, E: ToString + 'static>(
    key: &'static str,
    path: &str,
    parse: fn(&[u8]) -> Result<T, E>,
    found: impl Fn(T) + Send + 'static,
) -> (WatchedFile, Awaited) {
    let waits = watch::Sender::new(Some(String::new()));
    let (awaited, shown) = (waits.subscribe(), path.to_owned());
    let file = WatchedFile::new(key, PathBuf::from(path), move |content| match parsed(content, parse) {
        Ok(value) => {
            found(value);
            waits.send_replace(None);
        }
        Err(problem) if waits.borrow().is_some() => {
            let problem = format!("{key}: {shown} cannot be read; waiting for it: {problem}");
            waits.send_replace(Some(problem));
        }
        Err(problem) => {
            warn!("{key}: {shown} cannot be used; the last valid version stays in use: {problem}");
        }
    });
    (file, awaited)
}

/// Checks the files periodically. Never returns.
pub async fn watch(mut files: Vec<WatchedFile>) {
    let mut tick = tokio::time::interval(PERIOD);
    loop {
        tick.tick().await;
        files.iter_mut().for_each(WatchedFile::check);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    type Told = Arc<Mutex<Vec<Vec<Content>>>>;

    /// Watches files, and records the contents that are reported.
    fn watched(paths: &[&Path]) -> (WatchedFile, Told) {
        let told = Told::default();
        let sink = Arc::clone(&told);
        let paths = paths.iter().map(|path| path.to_path_buf()).collect();
        let file = WatchedFile::several("a.key", paths, move |contents| {
            sink.lock().expect("no panic").push(contents.to_vec());
        });
        (file, told)
    }

    fn news(told: &Told) -> Vec<Vec<Content>> {
        std::mem::take(&mut *told.lock().expect("no panic"))
    }

    #[expect(clippy::unnecessary_wraps, reason = "the content of a file that was read")]
    fn content(text: &str) -> Content {
        Ok(text.as_bytes().to_vec())
    }

    fn failed(error: FileError) -> Content {
        Err(error)
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_of_the_content_is_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let (file, told) = watched(&[&path]);
        assert_eq!(file.unreadable(), Some((path.as_path(), &FileError::Missing)));
        std::fs::write(&path, "one").expect("written");
        assert_eq!(watched(&[&path]).0.unreadable(), None);
        assert_eq!(news(&told), [[failed(FileError::Missing)]], "the file did not exist at first");
        let watching = tokio::spawn(watch(vec![file]));
        for (text, expected) in [
            (Some("one"), vec![vec![content("one")]]),
            (Some("one"), vec![]),
            (Some("two"), vec![vec![content("two")]]),
            (None, vec![vec![failed(FileError::Missing)]]),
            (None, vec![]),
        ] {
            match text {
                Some(text) => std::fs::write(&path, text).expect("written"),
                None => drop(std::fs::remove_file(&path)),
            }
            tokio::time::sleep(PERIOD).await;
            assert_eq!(news(&told), expected, "{text:?}");
        }
        watching.abort();
    }

    #[test]
    fn files_that_belong_together_are_reported_together() {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        let (mut file, told) = watched(&[&one, &other]);
        assert_eq!(news(&told), [[failed(FileError::Missing), failed(FileError::Missing)]]);
        std::fs::write(&one, "1").expect("written");
        std::fs::write(&other, "2").expect("written");
        file.check();
        assert_eq!(news(&told), [[content("1"), content("2")]]);
        std::fs::remove_dir_all(folder.path()).expect("removed");
        file.check();
        assert_eq!(news(&told), [[failed(FileError::NoFolder), failed(FileError::NoFolder)]]);
    }

    #[test]
    fn a_needed_file_is_awaited_until_it_is_valid() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let found = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&found);
        let parse = |content: &[u8]| secret(content).map(str::to_owned);
        let (mut file, awaited) = needed("a.key", &path.display().to_string(), parse, move |value| {
            sink.lock().expect("no panic").push(value);
        });
        let mut why = |content: Option<&str>| {
            if let Some(content) = content {
                std::fs::write(&path, content).expect("written");
            }
            file.check();
            awaited.borrow().clone()
        };
        let begin = format!("a.key: {} cannot be read; waiting for it: ", path.display());
        let missing = format!("{begin}it does not exist; create it, or correct the path");
        assert_eq!(why(None), Some(missing));
        assert_eq!(why(Some(" \n")), Some(format!("{begin}it is empty; write the value into it")));
        assert_eq!(why(Some("one\n")), None);
        assert_eq!(why(Some("")), None, "the last valid version stays in use");
        assert_eq!(why(Some("two")), None);
        assert_eq!(*found.lock().expect("no panic"), ["one", "two"]);
    }
}
