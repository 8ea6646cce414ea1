//! A name server for one name.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The address that it listens on: the port of name servers is always 53.
pub const ADDRESS: &str = "127.0.0.99";

/// Answers queries for one name with `127.0.0.1`, and queries for other names with "no such name".
pub struct Dns {
    end: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Dns {
    pub fn start(name: &str) -> Self {
        let socket = UdpSocket::bind((ADDRESS, 53)).expect("port 53 of an unused address");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a socket");
        let (end, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (ended, count, wanted) = (Arc::clone(&end), Arc::clone(&answered), encoded(name));
        let thread = thread::spawn(move || {
            let mut buffer = [0; 512];
            while !ended.load(Ordering::SeqCst) {
                match socket.recv_from(&mut buffer) {
                    Ok((length, client)) => {
                        let (answer, is_wanted) = answer(&buffer[..length], &wanted);
                        count.fetch_add(usize::from(is_wanted), Ordering::SeqCst);
                        socket.send_to(&answer, client).expect("sent");
                    }
                    Err(error) => {
                        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
                    }
                }
            }
        });
        Self { end, answered, thread: Some(thread) }
    }

    /// How often it has returned the address.
    pub fn answered(&self) -> usize {
        self.answered.load(Ordering::SeqCst)
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.end.store(true, Ordering::SeqCst);
        let ended = self.thread.take().expect("a thread").join();
        if !thread::panicking() {
            ended.expect("no panic");
        }
    }
}

/// A name as it is encoded in a message: each label after its length, and an empty one.
fn encoded(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| {
        let length = u8::try_from(label.len()).expect("a label");
        std::iter::once(length).chain(label.bytes())
    });
    labels.chain([0]).collect()
}

/// The response to a query, and whether it has the address.
fn answer(query: &[u8], wanted: &[u8]) -> (Vec<u8>, bool) {
    const HEADER: usize = 12;
    let end = query[HEADER..].iter().position(|byte| *byte == 0).expect("a name") + HEADER + 1;
    let name = query[HEADER..end].to_ascii_lowercase();
    let is_known = name == wanted;
    let is_address = query[end..end + 4] == [0, 1, 0, 1];
    let mut message = query[..2].to_vec();
    // A response, recursion available; the code 3 is "no such name".
    message.extend([0x81, if is_known { 0x80 } else { 0x83 }]);
    message.extend([0, 1, 0, u8::from(is_known && is_address), 0, 0, 0, 0]);
    message.extend(&query[HEADER..end + 4]);
    if is_known && is_address {
        // The name of the question, an address, for 5 s.
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 127, 0, 0, 1]);
    }
    (message, is_known && is_address)
}
