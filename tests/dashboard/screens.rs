//! The screens of virtual machines: those of QEMU, and of VNC servers that send what no machine should.

use std::fs;
use std::path::Path;

use cluster::screens::{Machine, Screen, Screens as Api, Show};

use crate::lab::Lab;

/// The namespace of the machines.
const NAMESPACE: &str = "tenant-ada";

/// The API of screens, and a virtual machine.
pub struct Screens {
    api: Api,
    machine: Machine,
}

impl Screens {
    /// Starts them, with the files of the machine in this folder.
    pub fn start(lab: &Lab, folder: &Path) -> Self {
        fs::create_dir(folder).expect("a folder");
        let machine = Machine::start(folder).expect("QEMU");
        Self { api: Api::start(&lab.cluster).expect("the API of screens"), machine }
    }

    /// Sets the screen of an Instance of Ada: of QEMU, of a server without a machine, or the status code of the response
    /// without a screen.
    pub fn set(&self, name: &str, show: &str) {
        let server = |show| self.api.server(show).expect("a server");
        let screen = match show {
            "machine" => self.machine.screen(),
            "plain" => server(Show::Plain),
            "huge" => server(Show::Huge),
            "outside" => server(Show::Outside),
            "cursor" => server(Show::Cursor),
            "jpeg" => server(Show::Jpeg),
            "waiting" => server(Show::Waiting),
            "name" => server(Show::Name),
            "clipboard" => server(Show::Clipboard),
            "compressed" => server(Show::Compressed),
            code => Screen::Status(code.parse().expect("a status code")),
        };
        self.api.set(NAMESPACE, &format!("{name}-main"), screen);
    }

    /// What the machine has said, and the characters that were typed.
    pub fn output(&self) -> String {
        self.machine.output()
    }

    /// The heads of the requests for screens since the last call.
    pub fn requests(&self) -> String {
        self.api.asked().join("\n")
    }
}
