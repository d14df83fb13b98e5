; A range of a dense tensor is filled; written once for each KIND of element.

define internal void @fill.KIND(i64 %begin, i64 %end, ptr %context) {
start:
  %data = load ptr, ptr %context
  %bits.at = getelementptr i64, ptr %context, i64 1
  %bits = load KIND, ptr %bits.at
  br label %head
head:
  %index = phi i64 [%begin, %start], [%next, %body]
  %more = icmp slt i64 %index, %end
  br i1 %more, label %body, label %done
body:
  %at = getelementptr KIND, ptr %data, i64 %index
  store KIND %bits, ptr %at
  %next = add i64 %index, 1
  br label %head
done:
  ret void
}
