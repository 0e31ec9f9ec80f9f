"""Values as bytes and as text, as metadata and other engines spell them."""
