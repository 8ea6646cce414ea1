//! A virtual machine of QEMU that boots a small program, in place of an operating system. It says `boot`, and shows each key
//! that is pressed. Both also appear on its serial port.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::Screen;
use crate::processes::Process;

/// The program, for a processor in real mode at the address `0x7c00`.
const PROGRAM: &[u8] = &[
    0x31, 0xc0, // xor ax, ax
    0x8e, 0xd8, // mov ds, ax
    0xbe, 0x26, 0x7c, // mov si, the text
    0xac, // next: lodsb
    0x08, 0xc0, // or al, al
    0x74, 0x05, // jz keys
    0xe8, 0x0b, 0x00, // call put
    0xeb, 0xf6, // jmp next
    0xb4, 0x00, // keys: mov ah, 0
    0xcd, 0x16, // int 0x16: waits for a key
    0xe8, 0x02, 0x00, // call put
    0xeb, 0xf7, // jmp keys
    0xb4, 0x0e, // put: mov ah, 0x0e
    0xbb, 0x07, 0x00, // mov bx, 7
    0xcd, 0x10, // int 0x10: shows the character
    0xba, 0xf8, 0x03, // mov dx, the serial port
    0xee, // out dx, al
    0xc3, // ret
];
const TEXT: &[u8] = b"boot\r\n\0";
/// The length of the first sector, and its last bytes.
const SECTOR: usize = 512;
const MARK: [u8; 2] = [0x55, 0xaa];
/// The size of a floppy disk.
const DISK: usize = 1_440 << 10;
/// How long it may take to boot.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running virtual machine, which ends when this is dropped.
pub struct Machine {
    process: Process,
    folder: PathBuf,
}

impl Machine {
    /// Starts it with its files in this folder, and waits until it has booted.
    pub fn start(folder: &Path) -> Result<Self> {
        let mut disk = [PROGRAM, TEXT].concat();
        disk.resize(SECTOR - MARK.len(), 0);
        disk.extend(MARK);
        disk.resize(DISK, 0);
        let path = |name: &str| folder.join(name).display().to_string();
        fs::write(path("disk"), disk)?;
        let arguments = [
            "-machine".to_owned(),
            "pc,accel=tcg".to_owned(),
            "-m".to_owned(),
            "32".to_owned(),
            "-nodefaults".to_owned(),
            "-vga".to_owned(),
            "std".to_owned(),
            "-display".to_owned(),
            "none".to_owned(),
            "-boot".to_owned(),
            "a".to_owned(),
            "-drive".to_owned(),
            format!("file={},format=raw,if=floppy", path("disk")),
            "-serial".to_owned(),
            format!("file:{}", path("serial")),
            "-vnc".to_owned(),
            format!("unix:{}", path("vnc")),
        ];
        let program = Path::new("qemu-system-x86_64");
        let process = Process::start("qemu", program, &arguments, folder.join("qemu.log"))
            .context("is qemu-system-x86 installed?")?;
        let mut machine = Self { process, folder: folder.to_path_buf() };
        let begin = Instant::now();
        while !machine.output().contains("boot") {
            machine.process.check()?;
            ensure!(begin.elapsed() < PATIENCE, "{}", machine.process.failure("does not boot"));
            thread::sleep(Duration::from_millis(50));
        }
        Ok(machine)
    }

    /// Its screen.
    pub fn screen(&self) -> Screen {
        Screen::Socket(self.folder.join("vnc"))
    }

    /// What it has said, and the characters that were typed, since its start.
    pub fn output(&self) -> String {
        let bytes = fs::read(self.folder.join("serial")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
