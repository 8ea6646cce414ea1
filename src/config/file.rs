//! Reading of files: the configuration, and the files that it names.

use std::io::{self, ErrorKind};
use std::path::Path;

/// The content of a file, or the reason why there is none.
pub type Content = Result<Vec<u8>, FileError>;

/// The reason why a file cannot be used, with the remedy. The sentence follows the name of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// There is no such file in its folder.
    #[error("it does not exist; create it, or correct the path")]
    Missing,
    /// Its folder does not exist.
    #[error("its folder does not exist; create it, or correct the path")]
    NoFolder,
    /// The path is the path of a folder.
    #[error("it is a folder; expected the path of a file")]
    IsFolder,
    /// A part of the path before the name is a file.
    #[error("a part of its path is a file; expected folders before the name of the file")]
    InFile,
    /// The permissions of the file, or of a folder, do not allow it.
    #[error("this process has no permission to read it; make it readable for the user of this process")]
    Denied,
    /// Another error of the operating system.
    #[error("{0}")]
    System(String),
    /// The text is in UTF-16, as editors on Windows save it.
    #[error("it is encoded in UTF-16; save the file as UTF-8")]
    Utf16,
    /// The content has bytes that no text has.
    #[error("it is a binary file; expected a text")]
    Binary,
    /// The text has a character that is not encoded in UTF-8, for example in Latin-1.
    #[error("line {0} is not encoded in UTF-8; save the file as UTF-8")]
    NotUtf8(usize),
    /// The file has no content.
    #[error("it is empty; write the value into it")]
    Empty,
}

impl FileError {
    /// Returns the reason why the operating system could not read a file.
    pub fn of(error: &io::Error, path: &Path) -> Self {
        match error.kind() {
            ErrorKind::NotFound => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                if folder.is_none_or(Path::exists) { Self::Missing } else { Self::NoFolder }
            }
            ErrorKind::NotADirectory => Self::InFile,
            ErrorKind::IsADirectory => Self::IsFolder,
            ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::System(error.to_string()),
        }
    }
}

/// Reads a file.
///
/// # Errors
/// When the operating system cannot read it.
pub fn read(path: &Path) -> Content {
    std::fs::read(path).map_err(|error| FileError::of(&error, path))
}

/// Reads a text file.
///
/// # Errors
/// When the operating system cannot read it, or it is not in UTF-8.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    text(&read(path)?).map(str::to_owned)
}

/// Reads a file with a secret: its text without the line end, and without the mark of UTF-8 at its beginning.
///
/// # Errors
/// When the operating system cannot read it, it is not in UTF-8, or it is empty.
pub fn read_secret(path: &Path) -> Result<String, FileError> {
    match read_text(path)?.trim_end_matches(['\r', '\n']) {
        "" => Err(FileError::Empty),
        secret => Ok(secret.to_owned()),
    }
}

/// Decodes the content of a text file. The mark of UTF-8 (U+FEFF) at the beginning is not part of the text.
///
/// # Errors
/// When it is not in UTF-8.
pub fn text(content: &[u8]) -> Result<&str, FileError> {
    let is_utf16 = content.starts_with(&[0xff, 0xfe]) || content.starts_with(&[0xfe, 0xff]);
    // Without a mark, one of the first two bytes of an ASCII text in UTF-16 is 0. No text in UTF-8 has such a byte.
    if is_utf16 || content.iter().take(2).any(|byte| *byte == 0) {
        return Err(FileError::Utf16);
    }
    if content.contains(&0) {
        return Err(FileError::Binary);
    }
    let content = content.strip_prefix("\u{feff}".as_bytes()).unwrap_or(content);
    std::str::from_utf8(content).map_err(|error| {
        let valid = content.split_at_checked(error.valid_up_to()).map_or(content, |(valid, _)| valid);
        FileError::NotUtf8(valid.split(|byte| *byte == b'\n').count())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn a_text_in_another_encoding_is_refused_and_the_mark_of_utf_8_is_skipped() {
        assert_eq!(text("clé: è\n".as_bytes()), Ok("clé: è\n"));
        assert_eq!(text("\u{feff}a: 1".as_bytes()), Ok("a: 1"));
        assert_eq!(text(b""), Ok(""));
        for marked in ["\u{feff}a: 1", "a: 1"] {
            assert_eq!(text(&utf16(marked, u16::to_le_bytes)), Err(FileError::Utf16), "{marked:?}");
            assert_eq!(text(&utf16(marked, u16::to_be_bytes)), Err(FileError::Utf16), "{marked:?}");
        }
        for binary in [&b"\x1f\x8b\x08\x00"[..], b"PK\x03\x04\0\0", b"a: 1\n\0"] {
            assert_eq!(text(binary), Err(FileError::Binary), "{binary:?}");
        }
        assert_eq!(text(b"a: 1\nb: 2\nc: \xe8\n"), Err(FileError::NotUtf8(3)));
        assert_eq!(text(b"\xef\xbb\xbf\xe8"), Err(FileError::NotUtf8(1)));
    }

    #[test]
    fn a_path_without_a_readable_file_is_explained() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "x").expect("written");
        for (name, expected) in [
            ("none", FileError::Missing),
            ("none/none", FileError::NoFolder),
            ("", FileError::IsFolder),
            ("file/none", FileError::InFile),
        ] {
            assert_eq!(read(&path(name)), Err(expected), "{name:?}");
        }
        assert_eq!(read(Path::new("there-is-no-such-file")), Err(FileError::Missing));
        assert_eq!(read(&path("file")), Ok(b"x".to_vec()));
        let denied = io::Error::from(ErrorKind::PermissionDenied);
        assert_eq!(FileError::of(&denied, &path("file")), FileError::Denied);
        let other = FileError::of(&io::Error::other("the disk is gone"), &path("file"));
        assert_eq!(other.to_string(), "the disk is gone");
    }

    #[test]
    fn a_secret_is_read_without_its_line_end_and_its_mark() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        for (content, expected) in [
            ("s3cret\r\n", Ok("s3cret")),
            ("\u{feff}s3cret\n", Ok("s3cret")),
            (" s3cret ", Ok(" s3cret ")),
            ("\n", Err(FileError::Empty)),
            ("\u{feff}", Err(FileError::Empty)),
        ] {
            std::fs::write(file.path(), content).expect("written");
            assert_eq!(read_secret(file.path()), expected.map(str::to_owned), "{content:?}");
        }
    }

    #[test]
    fn each_error_says_how_to_fix_it() {
        for error in [
            FileError::Missing,
            FileError::NoFolder,
            FileError::IsFolder,
            FileError::InFile,
            FileError::Denied,
            FileError::Utf16,
            FileError::Binary,
            FileError::NotUtf8(3),
            FileError::Empty,
        ] {
            let sentence = error.to_string();
            let (problem, remedy) = sentence.split_once("; ").expect("a remedy");
            assert!(!problem.is_empty() && !remedy.is_empty(), "{sentence}");
        }
    }
}
