//! A VNC server without a machine (RFC 6143): a plain one, and those that send what no machine should.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval};

/// The size of a plain screen.
const WIDTH: u16 = 320;
const HEIGHT: u16 = 240;
/// The encodings of rectangles.
const RAW: i32 = 0;
const RRE: i32 = 2;
const TIGHT: i32 = 7;
const JPEG: i32 = 21;
const CURSOR: i32 = -239;
/// The number of rectangles of [`Show::Waiting`], as a multiple of [`TOGETHER`], which are sent together.
const WAITING: u32 = 300 * TOGETHER;
const TOGETHER: u32 = 4_096;
/// The length of a long text of the clipboard, in bytes.
const LONG: u32 = 32 << 20;
/// The size and the interval of the frames of [`Show::Frames`].
pub const FRAME: usize = 50_000;
const PERIOD: Duration = Duration::from_millis(100);

/// The behaviour of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// A grey screen.
    Plain,
    /// A screen of 65,535 times 65,535 pixels.
    Huge,
    /// A rectangle of this size in a small screen.
    Outside,
    /// A cursor of this size.
    Cursor,
    /// A JPEG file, whose end nothing announces.
    Jpeg,
    /// A broken picture, and 1.2 million rectangles of one pixel, which wait for it.
    Waiting,
    /// A name of 4 GiB.
    Name,
    /// A text of the clipboard of 32 MiB, followed by a short one.
    Clipboard,
    /// A compressed text of the clipboard that claims to have 2 GiB.
    Compressed,
    /// Ten frames of 50 KB in a second, without the protocol.
    Frames,
}

/// Serves a viewer until it leaves.
pub async fn serve(mut stream: TcpStream, show: Show) -> Result<()> {
    if show == Show::Frames {
        return frames(stream).await;
    }
    stream.write_all(b"RFB 003.008\n").await?;
    stream.read_exact(&mut [0; 12]).await?;
    // One security type: none. Its choice, the result, and whether the screen is shared.
    stream.write_all(&[1, 1]).await?;
    stream.read_u8().await?;
    stream.write_u32(0).await?;
    stream.read_u8().await?;
    let (width, height) = if show == Show::Huge { (u16::MAX, u16::MAX) } else { (WIDTH, HEIGHT) };
    stream.write_all(&[width.to_be_bytes(), height.to_be_bytes()].concat()).await?;
    // 32 bits for a pixel, true color, and the shifts of red, green and blue.
    stream.write_all(&[32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0]).await?;
    if show == Show::Name {
        stream.write_u32(u32::MAX).await?;
        return flood(&mut stream, u32::MAX).await;
    }
    stream.write_u32(4).await?;
    stream.write_all(b"test").await?;
    let mut is_shown = false;
    loop {
        if asks_for_picture(&mut stream).await? && !is_shown {
            is_shown = true;
            picture(&mut stream, show).await?;
        }
    }
}

/// Reads a message of the viewer. Returns whether it asks for a picture.
async fn asks_for_picture(stream: &mut TcpStream) -> Result<bool> {
    let kind = stream.read_u8().await?;
    let rest = match kind {
        0 => 19,
        2 => {
            stream.read_u8().await?;
            4 * usize::from(stream.read_u16().await?)
        }
        3 => 9,
        4 => 7,
        5 => 5,
        6 => {
            stream.read_exact(&mut [0; 3]).await?;
            usize::try_from(stream.read_u32().await?)?
        }
        other => bail!("unknown message {other}"),
    };
    stream.read_exact(&mut vec![0; rest]).await?;
    Ok(kind == 3)
}

async fn picture(stream: &mut TcpStream, show: Show) -> Result<()> {
    match show {
        // Its control byte fills the rectangle with one color.
        Show::Outside => {
            rectangle(stream, u16::MAX, u16::MAX, TIGHT).await?;
            stream.write_all(&[0x80, 1, 2, 3]).await?;
        }
        Show::Cursor => rectangle(stream, u16::MAX, u16::MAX, CURSOR).await?,
        Show::Jpeg => rectangle(stream, WIDTH, HEIGHT, JPEG).await?,
        Show::Waiting => waiting(stream).await?,
        Show::Clipboard => {
            grey(stream).await?;
            text(stream, LONG).await?;
            flood(stream, LONG).await?;
            text(stream, 5).await?;
            stream.write_all(b"after").await?;
        }
        Show::Compressed => {
            grey(stream).await?;
            text(stream, 16_u32.wrapping_neg()).await?;
            // A text (1) that is provided (1 << 28), and no valid data.
            stream.write_all(&[0x10, 0, 0, 1, 0x78, 0x9c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).await?;
            text(stream, 5).await?;
            stream.write_all(b"after").await?;
        }
        Show::Plain | Show::Huge | Show::Name | Show::Frames => grey(stream).await?,
    }
    Ok(())
}

/// Sends the head of a picture with one rectangle.
async fn rectangle(stream: &mut TcpStream, width: u16, height: u16, encoding: i32) -> Result<()> {
    stream.write_all(&[0, 0, 0, 1]).await?;
    place(stream, width, height, encoding).await
}

/// Sends the head of a rectangle.
async fn place(stream: &mut TcpStream, width: u16, height: u16, encoding: i32) -> Result<()> {
    stream.write_all(&[0; 4]).await?;
    stream.write_all(&[width.to_be_bytes(), height.to_be_bytes()].concat()).await?;
    stream.write_all(&encoding.to_be_bytes()).await?;
    Ok(())
}

/// Sends a broken picture, and the rectangles that wait for it.
async fn waiting(stream: &mut TcpStream) -> Result<()> {
    stream.write_all(&[0, 0, 0, 2]).await?;
    place(stream, WIDTH, HEIGHT, TIGHT).await?;
    // A JPEG file (9) of one byte.
    stream.write_all(&[0x90, 1, 0]).await?;
    place(stream, WIDTH, HEIGHT, RRE).await?;
    stream.write_u32(WAITING).await?;
    // The color of the background; then color, place and size of each rectangle.
    stream.write_all(&[0; 4]).await?;
    let together = [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1].repeat(usize::try_from(TOGETHER)?);
    for _ in 0..WAITING / TOGETHER {
        stream.write_all(&together).await?;
    }
    Ok(())
}

/// Sends a grey screen.
async fn grey(stream: &mut TcpStream) -> Result<()> {
    rectangle(stream, WIDTH, HEIGHT, RAW).await?;
    stream.write_all(&vec![128; usize::from(WIDTH) * usize::from(HEIGHT) * 4]).await?;
    Ok(())
}

/// Sends the head of a text of the clipboard.
async fn text(stream: &mut TcpStream, length: u32) -> Result<()> {
    stream.write_all(&[3, 0, 0, 0]).await?;
    stream.write_all(&length.to_be_bytes()).await?;
    Ok(())
}

/// Sends this number of bytes.
async fn flood(stream: &mut TcpStream, length: u32) -> Result<()> {
    let piece = vec![b'x'; 16 << 10];
    let mut left = usize::try_from(length)?;
    while left > 0 {
        let part = left.min(piece.len());
        stream.write_all(&piece[..part]).await?;
        left -= part;
    }
    Ok(())
}

/// Sends frames, and reads nothing.
async fn frames(mut stream: TcpStream) -> Result<()> {
    let (mut tick, frame) = (interval(PERIOD), vec![7; FRAME]);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        stream.write_all(&frame).await?;
    }
}
