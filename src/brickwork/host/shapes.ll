; Questions about blocks: a data pointer, sizes and strides (in elements), as host/layout.py answers them in Python.

; Bytes from the first element of a block to the end of the last; 0 if it is empty.
define internal i64 @extent(ptr %block, i64 %word) {
start:
  %rank = and i64 %word, 255
  %element = lshr i64 %word, 32
  %sizes = getelementptr i64, ptr %block, i64 1
  %strides = getelementptr i64, ptr %sizes, i64 %rank
  br label %head
head:
  %axis = phi i64 [0, %start], [%next, %step]
  %last = phi i64 [0, %start], [%last.next, %step]
  %more = icmp ult i64 %axis, %rank
  br i1 %more, label %body, label %end
body:
  %size.at = getelementptr i64, ptr %sizes, i64 %axis
  %size = load i64, ptr %size.at
  %none = icmp eq i64 %size, 0
  br i1 %none, label %empty, label %step
step:
  %stride.at = getelementptr i64, ptr %strides, i64 %axis
  %stride = load i64, ptr %stride.at
  %steps = sub i64 %size, 1
  %way = mul i64 %steps, %stride
  %last.next = add i64 %last, %way
  %next = add i64 %axis, 1
  br label %head
end:
  %count = add i64 %last, 1
  %bytes = mul i64 %count, %element
  ret i64 %bytes
empty:
  ret i64 0
}

; Whether the memory of two blocks overlaps.
define i1 @bw_overlap(ptr %one, i64 %one.word, ptr %two, i64 %two.word) {
  %one.extent = call i64 @extent(ptr %one, i64 %one.word)
  %two.extent = call i64 @extent(ptr %two, i64 %two.word)
  %one.start = load i64, ptr %one
  %two.start = load i64, ptr %two
  %one.end = add i64 %one.start, %one.extent
  %two.end = add i64 %two.start, %two.extent
  %before = icmp ult i64 %one.start, %two.end
  %after = icmp ult i64 %two.start, %one.end
  %meet = and i1 %before, %after
  %one.some = icmp ne i64 %one.extent, 0
  %two.some = icmp ne i64 %two.extent, 0
  %some = and i1 %one.some, %two.some
  %overlap = and i1 %meet, %some
  ret i1 %overlap
}

; Whether different indices are seen to have different addresses: host/layout.py `is_injective`.
define i1 @bw_injective(ptr %block, i64 %word) {
start:
  %bytes = call i64 @extent(ptr %block, i64 %word)
  %empty = icmp eq i64 %bytes, 0
  %rank = and i64 %word, 255
  %sizes = getelementptr i64, ptr %block, i64 1
  %strides = getelementptr i64, ptr %sizes, i64 %rank
  br i1 %empty, label %yes, label %head
head:
  %axis = phi i64 [0, %start], [%axis.next, %step]
  %more = icmp ult i64 %axis, %rank
  br i1 %more, label %body, label %yes
body:
  %size.at = getelementptr i64, ptr %sizes, i64 %axis
  %size = load i64, ptr %size.at
  %stride.at = getelementptr i64, ptr %strides, i64 %axis
  %stride = load i64, ptr %stride.at
  %single = icmp eq i64 %size, 1
  br i1 %single, label %step, label %inner
inner:
  %other = phi i64 [0, %body], [%other.next, %within]
  %sum = phi i64 [0, %body], [%sum.next, %within]
  %inner.more = icmp ult i64 %other, %rank
  br i1 %inner.more, label %within, label %compare
within:
  %other.size.at = getelementptr i64, ptr %sizes, i64 %other
  %other.size = load i64, ptr %other.size.at
  %other.stride.at = getelementptr i64, ptr %strides, i64 %other
  %other.stride = load i64, ptr %other.stride.at
  %less = icmp slt i64 %other.stride, %stride
  %equal = icmp eq i64 %other.stride, %stride
  %earlier = icmp ult i64 %other, %axis
  %tie = and i1 %equal, %earlier
  %inside = or i1 %less, %tie
  %steps = sub i64 %other.size, 1
  %way = mul i64 %steps, %other.stride
  %counted = select i1 %inside, i64 %way, i64 0
  %sum.next = add i64 %sum, %counted
  %other.next = add i64 %other, 1
  br label %inner
compare:
  %apart = icmp sgt i64 %stride, %sum
  br i1 %apart, label %step, label %no
step:
  %axis.next = add i64 %axis, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether an axis of more than one element has stride 0.
define i1 @bw_expanded(ptr %block, i64 %word) {
start:
  %bytes = call i64 @extent(ptr %block, i64 %word)
  %empty = icmp eq i64 %bytes, 0
  %rank = and i64 %word, 255
  %sizes = getelementptr i64, ptr %block, i64 1
  %strides = getelementptr i64, ptr %sizes, i64 %rank
  br i1 %empty, label %no, label %head
head:
  %axis = phi i64 [0, %start], [%next, %body]
  %more = icmp ult i64 %axis, %rank
  br i1 %more, label %body, label %no
body:
  %size.at = getelementptr i64, ptr %sizes, i64 %axis
  %size = load i64, ptr %size.at
  %stride.at = getelementptr i64, ptr %strides, i64 %axis
  %stride = load i64, ptr %stride.at
  %several = icmp sgt i64 %size, 1
  %still = icmp eq i64 %stride, 0
  %bad = and i1 %several, %still
  %next = add i64 %axis, 1
  br i1 %bad, label %yes, label %head
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether a block has the sizes at %sizes.
define i1 @bw_same_sizes(ptr %block, ptr %sizes, i64 %rank) {
start:
  %mine = getelementptr i64, ptr %block, i64 1
  br label %head
head:
  %axis = phi i64 [0, %start], [%next, %body]
  %more = icmp ult i64 %axis, %rank
  br i1 %more, label %body, label %yes
body:
  %mine.at = getelementptr i64, ptr %mine, i64 %axis
  %mine.size = load i64, ptr %mine.at
  %size.at = getelementptr i64, ptr %sizes, i64 %axis
  %size = load i64, ptr %size.at
  %same = icmp eq i64 %mine.size, %size
  %next = add i64 %axis, 1
  br i1 %same, label %head, label %no
yes:
  ret i1 true
no:
  ret i1 false
}
