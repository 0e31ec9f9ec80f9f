"""Files on this machine: on its disk, or in the memory of this process."""
