//! Rejects all requests of a machine.

use russh::Channel;
use russh::client::{ChannelOpenHandle, Handler, Msg, Session};
use russh::keys::PublicKeyOrCertificate;

/// Accepts every host key (the parent module explains why) and rejects all requests of a machine. The library would
/// accept channels that a machine opens.
pub struct Refusing;

/// Rejects channels of these kinds, with these arguments, by dropping the handles of their requests.
macro_rules! refuse {
    ($($channel:ident($($argument:ty),*);)+) => {$(
        async fn $channel(
            &mut self,
            _: Channel<Msg>,
            $(_: $argument,)*
            _: ChannelOpenHandle,
            _: &mut Session,
        ) -> Result<(), Self::Error> {
            Ok(())
        }
    )+};
}

impl Handler for Refusing {
    type Error = russh::Error;

    async fn check_server_key(&mut self, _: &PublicKeyOrCertificate) -> Result<bool, Self::Error> {
        Ok(true)
    }

    refuse! {
        server_channel_open_forwarded_tcpip(&str, u32, &str, u32);
        server_channel_open_forwarded_streamlocal(&str);
        server_channel_open_agent_forward();
        server_channel_open_session();
        server_channel_open_direct_tcpip(&str, u32, &str, u32);
        server_channel_open_direct_streamlocal(&str);
        server_channel_open_x11(&str, u32);
    }
}
