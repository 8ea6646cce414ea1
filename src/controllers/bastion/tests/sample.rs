//! Keys for tests, as `ssh-keygen` wrote them.

/// An Ed25519 key.
pub const ED25519: &str = "\
    ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICzWb9yur4E5Y2D0PjWtq10sAAj2O1lHxUf2qn/AzNr1";

/// An RSA key with 2048 bits.
pub const RSA: &str = "\
    ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQDqAemhm4mVYVrG3TxDY127Cqwe7TU4/eetmd0uXPZ/mDnkse+fpVNYfJl6\
    7S7PFKrqhWlwB/Q0KrVlKPziWxRmnvB/syt+TjCHdI/COxx90qj6Wry42e4KZq2kWn0igOX+jASeaF2M+fbLuwvlzcuDbzcC\
    UGFE+cMx242yMrgjS8/VhtVymkeQB4FsdckcT94TJsn6qCq6VRCH+vkTRKullC1O9pnJ97hAArCPimlZQ5TAHDSbVJuM/4mK\
    +6wBlA9KtFApIopNJ2Sd+m78hE5QlMF02wW1o/H6MT4Eb3wJl72QXMULkvLoZXL162iXt/3MmwQqqPM99EVPFMwuHdOT";

/// An ECDSA key on P-256.
pub const ECDSA: &str = "\
    ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBBUfau5j7Yu4lTqSsCAuhHgZ\
    PjDt9ytteIvg2p3BcqBZNBXZeN2PRoxdZWNC/VbA8te+IWBm4MCr7wAAJi6/DSg=";

/// A key on a security token.
pub const SECURITY_KEY: &str = "\
    sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIAABAgMEBQYHCAkKCwwNDg8QE\
    RITFBUWFxgZGhscHR4fAAAABHNzaDo=";

/// A DSA key, which servers no longer accept.
pub const DSA: &str = "\
    ssh-dss AAAAB3NzaC1kc3MAAACBALhxkqHKOKpEX/Ngw/jkUfRV+dNpJD4SBuTpSwNiyDHQe07Q9kC1s0BBxhP6kxFbCe6T\
    uwF/m6bTFC0bK+52hi30RBbLKCkAdLFPLrqk2/kCt7oUUy0jgx9H6gWkvcwTXjLBb/LDZPsGuUaUXUtCr9uUnDh57CPKbl9b\
    BcDwmSFjAAAAFQDHmd0gktDeQI02BunST8O1lXivbwAAAIEAjTgCZ2XVBdHq4m1Qkt7tndJeJFpRIQZv5PoquIExz1uValHz\
    g9oYyToVlfdMzFLL+creK9tA2McteJPYjWyc0PMuhkD7TejNe238h+EhqjU+o9++8Gb5yHIMB+NQLGQVvFnZHsV7VbSG4jDk\
    1JfVWmAunaUH2ESAdPiZgO/wZ9MAAACAM4e7IyKBVlQCIkQ1/IDwvxw42GqYUI7xf/cFNRJs6jZR+1wO6zMWGiQmwR9QW9Hp\
    +EHXM7ZbvQP2X4D16D89jHDsjx8BjkHgYXe5Li/Y36q0aT+iWC8J9MXtIyIyu1VnpHc0P/AzEd5GhDy+EC3rOUpRiIA57FtS\
    aDhYM7SHVZY=";

/// A certificate.
pub const CERTIFICATE: &str = "\
    ecdsa-sha2-nistp256-cert-v01@openssh.com AAAAKGVjZHNhLXNoYTItbmlzdHAyNTYtY2VydC12MDFAb3BlbnNzaC5\
    jb20AAAAgW2Ab8urySfhxuGNaC9ISjigCQAGn0zMsIwTG5xHv6kIAAAAIbmlzdHAyNTYAAABBBBUfau5j7Yu4lTqSsCAuhHg\
    ZPjDt9ytteIvg2p3BcqBZNBXZeN2PRoxdZWNC/VbA8te+IWBm4MCr7wAAJi6/DSgAAAAAAAAAAAAAAAEAAAABeAAAAAsAAAA\
    HYmFzdGlvbgAAAAAAAAAA//////////8AAAAAAAAAggAAABVwZXJtaXQtWDExLWZvcndhcmRpbmcAAAAAAAAAF3Blcm1pdC1\
    hZ2VudC1mb3J3YXJkaW5nAAAAAAAAABZwZXJtaXQtcG9ydC1mb3J3YXJkaW5nAAAAAAAAAApwZXJtaXQtcHR5AAAAAAAAAA5\
    wZXJtaXQtdXNlci1yYwAAAAAAAAAAAAAAMwAAAAtzc2gtZWQyNTUxOQAAACAs1m/crq+BOWNg9D41ratdLAAI9jtZR8VH9qp\
    /wMza9QAAAFMAAAALc3NoLWVkMjU1MTkAAABAfgnjK9hhQL42CJsEZEgBipWgkZ4Vv95nfcIIA19aBcQ+2NF3HEJtIQxeJeJ\
    gwYYwY1FfXhrOFL/KkrZYaYNLDw==";

/// A key of an unknown type.
pub const UNKNOWN: &str = "\
    future@example.org AAAAEmZ1dHVyZUBleGFtcGxlLm9yZwAAAANrZXk=";
