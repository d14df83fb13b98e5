"""The verbs of a schedule, a file each: `apply` carries one out on the IR, and `refusal` says where it is illegal."""
