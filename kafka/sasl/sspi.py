"""kafka.sasl.sspi (2.3): empty. Kerberos needs the extra ``gssapi``, on Windows too."""

from __future__ import annotations

from typing import List

__all__: List[str] = []
