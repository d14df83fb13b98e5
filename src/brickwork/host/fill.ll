; A range of a dense tensor is filled, LANES elements (64 bytes) at a time; written once for each KIND of element.

define internal void @fill.KIND(i64 %begin, i64 %end, ptr %context) {
start:
  %data = load ptr, ptr %context
  %bits.at = getelementptr i64, ptr %context, i64 1
  %bits = load KIND, ptr %bits.at
  %one = insertelement <LANES x KIND> poison, KIND %bits, i64 0
  %all = shufflevector <LANES x KIND> %one, <LANES x KIND> poison, <LANES x i32> zeroinitializer
  %last = sub i64 %end, LANES
  br label %wide
wide:
  %first = phi i64 [%begin, %start], [%beyond, %block]
  %enough = icmp sle i64 %first, %last
  br i1 %enough, label %block, label %head
block:
  %here = getelementptr KIND, ptr %data, i64 %first
  store <LANES x KIND> %all, ptr %here, align 1
  %beyond = add i64 %first, LANES
  br label %wide
head:
  %index = phi i64 [%first, %wide], [%next, %body]
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
