//! Whether a JPEG file has its end. Decoders show what there is of one that has none, and say nothing.

/// Follows the markers to that of the end. What lies behind it does not count: cameras put more pictures and films there.
pub(crate) fn is_whole(bytes: &[u8]) -> bool {
    // The marker of the beginning is the only one before the end that has no length.
    let mut rest = bytes.get(2..).unwrap_or_default();
    // Among pixels, zeroes and markers of restarts follow the first byte of a marker.
    let is_marker = |pair: &[u8]| pair[0] == 0xFF && !matches!(pair[1], 0x00 | 0x01 | 0xD0..=0xD7 | 0xFF);
    while let Some(at) = rest.windows(2).position(is_marker) {
        if rest[at + 1] == 0xD9 {
            return true;
        }
        rest = &rest[at + 2..];
        let length = rest.first_chunk().map_or(usize::MAX, |&length| u16::from_be_bytes(length).into());
        rest = rest.get(length..).unwrap_or_default();
    }
    false
}
