use futures::FutureExt;
use tokio::io::AsyncWriteExt;
use tokio::task::yield_now;
use tokio::time::advance;

use super::slots::SHORTEST_WAIT;
use super::*;

#[tokio::test(start_paused = true)]
async fn the_longest_waiting_connection_closes_and_a_serving_one_does_not() {
    let connections = Connections::new(2, 1);
    let place = || connections.place(false).now_or_never();
    let (first, second) = (place().expect("free"), place().expect("free"));
    assert_eq!(first.open(), Open::Fresh);
    first.serve();
    assert_eq!(first.open(), Open::Serving);
    assert!(place().is_none(), "both slots are taken");
    assert!(second.ended().now_or_never().is_none(), "its request may arrive at any moment");
    advance(SHORTEST_WAIT).await;
    assert!(place().is_none(), "both slots are still taken");
    assert!(first.ended().now_or_never().is_none(), "it is serving a request");
    assert!(second.ended().now_or_never().is_some());
    drop(second);
    let third = place().expect("the place of the second");
    first.wait();
    assert_eq!(first.open(), Open::Answered);
    advance(SHORTEST_WAIT).await;
    assert!(place().is_none());
    assert!(third.ended().now_or_never().is_some(), "it has waited longer than the first");
    assert!(first.ended().now_or_never().is_none());
    first.serve();
    first.stream();
    let fourth = place().expect("a stream has no slot");
    drop((first, third, fourth));
    assert!(connections.served.waiting.lock().connections.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_is_not_asked_to_close() {
    let connections = Connections::new(2, 1);
    let (kept, other) = (connections.place(false).await, connections.place(false).await);
    for connection in [&kept, &other] {
        connection.serve();
    }
    assert!(kept.keep() && kept.keep(), "one promise is enough for all its requests");
    assert!(!other.keep(), "half of the connections are kept");
    for connection in [&kept, &other] {
        connection.wait();
    }
    let new = connections.place(false);
    let (new, ()) = tokio::join!(new, async {
        assert!(other.ended().await);
        drop(other);
    });
    assert!(kept.ended().now_or_never().is_none());
    new.serve();
    assert!(!new.keep());
    kept.serve();
    kept.stream();
    assert!(new.keep(), "a stream needs no promise");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_asked_to_close_gets_no_promise() {
    let connections = Connections::new(2, 1);
    let (asked, other) = (connections.place(false).await, connections.place(false).await);
    other.serve();
    advance(SHORTEST_WAIT).await;
    assert!(connections.place(false).now_or_never().is_none(), "both slots are taken");
    // Its request arrives at this moment.
    asked.serve();
    assert!(!asked.keep() && other.keep());
    asked.wait();
    assert!(connections.served.waiting.lock().connections.is_empty(), "it is not asked again");
    connections.stopping.send_replace(true);
    assert!(!other.keep(), "the server stops");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_does_not_close_delays_a_new_one_only_briefly() {
    let connections = Connections::new(3, 1);
    let (stuck, other, serving) =
        (connections.place(false).await, connections.place(false).await, connections.place(false).await);
    serving.serve();
    let new = tokio::spawn(async move { connections.place(false).await });
    stuck.ended().await;
    other.ended().await;
    drop(other);
    new.await.expect("the place of the other");
    drop((stuck, serving));
}

#[tokio::test(start_paused = true)]
async fn writes_take_half_of_the_slots_until_their_first_response() {
    let connections = Connections::new(4, 1);
    let place = |is_write| connections.place(is_write).now_or_never();
    let (first, second) = (place(true).expect("free"), place(true).expect("free"));
    assert!(place(true).is_none(), "half of the slots are taken");
    let read = place(false).expect("free");
    first.wait();
    assert!(place(true).is_none(), "its request is not complete yet");
    first.serve();
    assert!(first.keep());
    first.wait();
    let third = place(true).expect("the first has its response");
    // Half a request does not keep others from writing.
    advance(SHORTEST_WAIT).await;
    assert!(place(true).is_none());
    assert!(second.ended().now_or_never().is_some());
    drop((first, second, third, read));
}

#[tokio::test]
async fn a_connection_that_waits_for_a_slot_gets_one_after_a_stop() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let mut client = TcpStream::connect(address).await.expect("a connection");
    let (stream, _) = listener.accept().await.expect("a connection");
    let connections = Connections::new(1, 1);
    let serving = connections.place(false).await;
    serving.serve();
    let accepted = connections.accepted().await;
    let hour = Duration::from_hours(1);
    let waiting = tokio::spawn(async move { accepted.place(&stream, hour, |_| false).await.is_some() });
    let is_silent = || !connections.accepted.waiting.lock().connections.is_empty();
    while !is_silent() {
        yield_now().await;
    }
    client.write_all(b"GET").await.expect("sent");
    while is_silent() {
        yield_now().await;
    }
    connections.stopping.send_replace(true);
    yield_now().await;
    drop(serving);
    assert!(waiting.await.expect("no panic"), "its request may be complete");
}

#[tokio::test]
async fn data_that_has_arrived_before_a_stop_is_noticed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let mut client = TcpStream::connect(address).await.expect("a connection");
    let (stream, _) = listener.accept().await.expect("a connection");
    let connections = Connections::new(1, 1);
    let accepted = connections.accepted().await;
    client.write_all(b"GET").await.expect("sent");
    connections.stopping.send_replace(true);
    assert!(accepted.place(&stream, Duration::from_hours(1), |_| false).await.is_some());
}

#[tokio::test]
async fn a_silent_connection_has_no_slot_and_is_closed_for_another_one() {
    const HOUR: Duration = Duration::from_hours(1);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    let connect = async || {
        let client = TcpStream::connect(address).await.expect("a connection");
        (client, listener.accept().await.expect("a connection").0)
    };
    let connections = Connections::new(1, 1);
    let (_client, silent) = connect().await;
    let accepted = connections.accepted().await;
    let first = tokio::spawn(async move { accepted.place(&silent, HOUR, |_| false).await.is_some() });
    // There is room for one connection without a slot.
    let accepted = connections.accepted().await;
    assert!(!first.await.expect("no panic"), "it was closed");
    let (client, gone) = connect().await;
    drop(client);
    assert!(accepted.place(&gone, HOUR, |_| false).await.is_none(), "it has disconnected");
    let (mut client, sent) = connect().await;
    client.write_all(b"GET").await.expect("sent");
    assert!(connections.accepted().await.place(&sent, HOUR, |_| false).await.is_some());
    assert_eq!(
        (connections.accepted.free.available_permits(), connections.served.free.available_permits()),
        (1, 1)
    );
}
