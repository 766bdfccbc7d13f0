"""What every room needs and no field owns: errors, the registry of plugins, atomic files, validation of foreign values,
progress of long work, memory of the process. It imports no other room."""
