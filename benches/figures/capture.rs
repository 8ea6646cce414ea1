//! The SSH tracker under load: frames at full speed in a network namespace, where every second frame opens a
//! connection; and a flood of destinations.

use std::fs;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crownlabs::testing::{Capture, ConnectionCounter, Settings, State, THREAD, Tracked, program};
use nix::sys::socket::{
    AddressFamily, MsgFlags, MultiHeaders, SockFlag, SockProtocol, SockType, sendmmsg, socket,
};
use nix::time::{ClockId, clock_gettime};
use socket2::{SockFilter, Socket};

use crate::harness::{Figures, count};
use cluster::network::{Namespace, Sender, syn, tcp};

/// The frames of a measurement.
const FRAMES: u32 = 1_000_000;
/// The frames of one system call.
const BATCH: u32 = 64;
/// The destinations of the connections.
const DESTINATIONS: u32 = 8;
/// The destinations of the flood.
const FLOOD: u32 = 10_000_000;
/// How often the cost of refused frames is measured, and the number of frames in one such measurement.
const ROUNDS: usize = 1000;
const ROUND: u32 = 2048;
/// The code of the instruction that ends a filter, with the number of bytes that it accepts.
const RETURN: u16 = 0x06;
const MEBIBYTE: f64 = 1024.0 * 1024.0;
/// The longest wait for the capture.
const PATIENCE: Duration = Duration::from_secs(30);

/// Measures the SSH tracker.
pub fn load(figures: &mut Figures) -> Result<()> {
    let (here, there) = (Namespace::new(), Namespace::new());
    here.connect("cap0", &there);
    // The memory that the sender itself needs is allocated before the measurement.
    here.run(|| send(&mixed(), BATCH));
    let before = anonymous()?;
    let tracker = Tracker::start(&here)?;
    let idle = Tracker::nanoseconds()?;
    std::thread::sleep(Duration::from_secs(2));
    figures.add(
        "capture: processor time of 2 s at rest",
        (Tracker::nanoseconds()? - idle) / 1e6,
        "ms",
        Some(1.0),
    );
    counted(figures, &here, &tracker)?;
    let grown = anonymous()? - before;
    figures.add("capture: memory beside the ring", grown / MEBIBYTE, "MiB", Some(1.0));
    flooded(figures, &tracker);
    let grown = anonymous()? - before;
    figures.add("capture: the same after 10,000,000 destinations", grown / MEBIBYTE, "MiB", Some(1.0));
    let series = count(tracker.series().len());
    figures.add("capture: series after 10,000,000 destinations", series, "", Some(4096.0));
    let begin = Instant::now();
    ensure!(tracker.capture.stop(), "the thread that captures has panicked");
    figures.add(
        "capture: time until the thread has ended",
        begin.elapsed().as_secs_f64() * 1e3,
        "ms",
        Some(200.0),
    );
    compared(figures, &here)?;
    refused(figures, &here)
}

/// Sends a million frames. Every second one opens a connection.
fn counted(figures: &mut Figures, here: &Namespace, tracker: &Tracker) -> Result<()> {
    let begin = (Tracker::nanoseconds()?, Instant::now());
    let sent = here.run(|| send(&mixed(), FRAMES));
    let expected = FRAMES / 2;
    let deadline = Instant::now() + PATIENCE;
    while tracker.counted() < expected && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(100));
    }
    let each = (Tracker::nanoseconds()? - begin.0) / f64::from(expected);
    figures.add("capture: frames sent in a second", f64::from(FRAMES) / sent.wall / 1e6, "million", None);
    figures.add(
        "capture: connections of 500,000 lost",
        f64::from(expected) - f64::from(tracker.counted()),
        "",
        Some(0.0),
    );
    figures.add("capture: processor time of a connection", each / 1e3, "µs", Some(1.0));
    Ok(())
}

/// Sends to more destinations than the tracker has series for.
fn flooded(figures: &mut Figures, tracker: &Tracker) {
    let begin = Instant::now();
    for n in 0..FLOOD {
        tracker.counter.count((Ipv4Addr::from(0x0b00_0000 + n), 22).into());
    }
    let each = begin.elapsed().as_secs_f64() / f64::from(FLOOD);
    figures.add("capture: counting a new destination", each * 1e6, "µs", None);
}

/// The same traffic with `tcpdump -w /dev/null`.
fn compared(figures: &mut Figures, here: &Namespace) -> Result<()> {
    let filter = "outbound and tcp dst port 22 and tcp[13] & 0x17 = 2";
    let arguments = ["-n", "-i", "any", "-s", "1600", "-w", "/dev/null", filter];
    let mut command = Command::new("tcpdump");
    command.args(arguments).stderr(Stdio::piped());
    let mut tcpdump = here.run(|| command.spawn()).context("tcpdump, for the comparison")?;
    let listens = || {
        fs::read_to_string(format!("/proc/{}/net/packet", tcpdump.id()))
            .is_ok_and(|text| text.lines().count() > 1)
    };
    let deadline = Instant::now() + PATIENCE;
    while !listens() {
        ensure!(Instant::now() < deadline, "tcpdump does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    here.run(|| send(&mixed(), FRAMES));
    std::thread::sleep(Duration::from_secs(2));
    let time = schedule(&format!("/proc/{}/schedstat", tcpdump.id()))?;
    let (captured, dropped) = ended(&mut tcpdump)?;
    figures.add("tcpdump: connections of 500,000 lost", f64::from(FRAMES / 2) - captured, "", None);
    figures.add("tcpdump: of these dropped by the kernel", dropped, "", None);
    figures.add("tcpdump: processor time of a connection", time / captured / 1e3, "µs", None);
    Ok(())
}

/// Stops tcpdump, which then says how many packets it captured and how many the kernel dropped.
fn ended(tcpdump: &mut Child) -> Result<(f64, f64)> {
    let asked = Command::new("kill").args(["-s", "INT", &tcpdump.id().to_string()]).status()?;
    ensure!(asked.success(), "tcpdump cannot be stopped");
    let mut said = String::new();
    std::io::Read::read_to_string(tcpdump.stderr.as_mut().context("its standard error")?, &mut said)?;
    tcpdump.wait()?;
    let number = |words: &str| -> Result<f64> {
        let line = said.lines().find(|line| line.contains(words)).with_context(|| said.clone())?;
        Ok(line.split(' ').next().unwrap_or_default().parse()?)
    };
    Ok((number("captured")?, number("dropped by kernel")?))
}

/// The cost of the capture for a host when all its packets are refused. The kernel copies the descriptor of each packet
/// for a packet socket before it runs the filter, so the lowest cost of any capture is a socket whose filter refuses
/// every packet at once. The rest is the cost of the filter itself. One socket gets the two filters in turn, for a few
/// milliseconds each, so that other load on the machine affects both alike: the minimal filter, the filter of the
/// capture, the minimal filter again. The figure is the median of the differences. The difference between the first and
/// the third run shows its precision.
fn refused(figures: &mut Figures, here: &Namespace) -> Result<()> {
    let frames = [tcp("10.1.0.2", 22, 1, |step| step.ack(1))];
    let least = [SockFilter::new(RETURN, 0, 0, 0)];
    let ours = program(Tracked { port: 22, ipv6: true }, 1600).into_iter();
    let ours: Vec<SockFilter> =
        ours.map(|step| SockFilter::new(step.code, step.jt, step.jf, step.k)).collect();
    let (measured, received) = here.run(|| -> Result<_> {
        let socket = packet_socket(&least)?;
        let measure = |filter: &[SockFilter]| -> Result<f64> {
            socket.attach_filter(filter)?;
            Ok(send(&frames, ROUND).processor)
        };
        let round = |_| Ok([measure(&least)?, measure(&ours)?, measure(&least)?]);
        let measured: Vec<[f64; 3]> = (0..ROUNDS).map(round).collect::<Result<_>>()?;
        Ok((measured, socket.recv(&mut [const { MaybeUninit::uninit() }; 64]).is_ok()))
    })?;
    ensure!(!received, "a packet passed the filter that opens no connection");
    let of = |value: fn(&[f64; 3]) -> f64| median(measured.iter().map(value).collect());
    figures.add("capture: sending a frame that is refused at once", of(|[first, ..]| *first), "ns", None);
    let filter = of(|[first, ours, last]| ours - f64::midpoint(*first, *last));
    figures.add("capture: its filter, for a refused packet", filter, "ns", Some(40.0));
    let same = of(|[first, _, last]| last - first);
    figures.add("capture: the same for two filters that are equal", same, "ns", None);
    Ok(())
}

/// The median of the values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A packet socket with this filter. It does not wait for packets.
fn packet_socket(filter: &[SockFilter]) -> Result<Socket> {
    let all = SockProtocol::EthAll;
    let socket =
        Socket::from(socket(AddressFamily::Packet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, all)?);
    socket.attach_filter(filter)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A capture with its counter.
struct Tracker {
    capture: Capture,
    counter: Arc<ConnectionCounter>,
}

impl Tracker {
    fn start(namespace: &Namespace) -> Result<Self> {
        let counter = Arc::new(ConnectionCounter::new("connections", "Connections"));
        let tracked = Tracked { port: 22, ipv6: true };
        let settings = Settings { interface: None, tracked, snap_length: 1600 };
        let capture = namespace.run(|| Capture::start(settings, Arc::clone(&counter)))?;
        let (state, deadline) = (capture.state(), Instant::now() + PATIENCE);
        while *state.borrow() != State::Capturing {
            ensure!(Instant::now() < deadline, "{:?}", state.borrow());
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Self { capture, counter })
    }

    /// The series.
    fn series(&self) -> Vec<u32> {
        let (mut first, mut text) = (String::new(), String::new());
        // A series that is new has the value 0 in the first text.
        self.counter.render(&mut first);
        self.counter.render(&mut text);
        let lines = text.lines().filter(|line| line.starts_with("connections{"));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect()
    }

    /// The number of counted connections.
    fn counted(&self) -> u32 {
        self.series().iter().sum()
    }

    /// The processor time of the capture's thread.
    fn nanoseconds() -> Result<f64> {
        for task in fs::read_dir("/proc/self/task")? {
            let path = task?.path();
            if fs::read_to_string(path.join("comm"))?.trim() == THREAD {
                return schedule(&path.join("schedstat").to_string_lossy());
            }
        }
        anyhow::bail!("the thread {THREAD} does not run")
    }
}

/// The processor time in a file `schedstat`, in nanoseconds.
fn schedule(path: &str) -> Result<f64> {
    let text = fs::read_to_string(path)?;
    Ok(text.split(' ').next().context("a number")?.parse()?)
}

/// The memory of this process, in bytes, without the memory that it shares with files or (the ring) with the kernel.
fn anonymous() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).context("RssAnon")?;
    let kibibytes: f64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
    Ok(kibibytes * 1024.0)
}

/// Frames. Every second one opens a connection.
fn mixed() -> Vec<Vec<u8>> {
    let pair = |n| {
        let destination = format!("10.1.0.{}", n + 2);
        [syn(&destination, 22, 0), tcp(&destination, 22, 0, |step| step.ack(1))]
    };
    (0..DESTINATIONS).flat_map(pair).collect()
}

/// The cost of sending: seconds, and nanoseconds of processor time for each frame.
struct Sent {
    wall: f64,
    processor: f64,
}

/// Sends frames in turn, each with another source port or sequence number, out of `cap0` of this thread's namespace.
fn send(frames: &[Vec<u8>], number: u32) -> Sent {
    let sender = Sender::new("cap0");
    let mut batch: Vec<Vec<u8>> = frames.iter().cycle().take(BATCH as usize).cloned().collect();
    let addresses = vec![Some(sender.device); batch.len()];
    let mut headers = MultiHeaders::preallocate(batch.len(), None);
    let begin = (Instant::now(), processor());
    for first in (0..number).step_by(BATCH as usize) {
        for (n, frame) in (first..).zip(&mut batch) {
            // Source port and sequence number of TCP over IPv4.
            frame[34..36].copy_from_slice(&n.to_be_bytes()[2..]);
            frame[38..42].copy_from_slice(&n.to_be_bytes());
        }
        let slices: Vec<[IoSlice<'_>; 1]> = batch.iter().map(|frame| [IoSlice::new(frame)]).collect();
        let sent =
            sendmmsg(sender.socket.as_raw_fd(), &mut headers, &slices, &addresses, [], MsgFlags::empty());
        assert_eq!(sent.expect("sent").count(), batch.len());
    }
    Sent { wall: begin.0.elapsed().as_secs_f64(), processor: (processor() - begin.1) / f64::from(number) }
}

/// The processor time of this thread until now, in nanoseconds. `schedstat` is updated only with each tick.
fn processor() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("the clock of a thread");
    Duration::from(time).as_secs_f64() * 1e9
}
