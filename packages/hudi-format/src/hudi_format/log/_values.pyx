# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Values of sound log blocks, from their rows of numbers (`hudi_format.log.block_index` names the columns).

A value is made by its class's own slots instead of its constructor, which takes longer than all else here; header
bytes that are those of the block before are not looked up again.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcmp

cdef extern from "Python.h":
    void* PyType_GetSlot(PyTypeObject* kind, int slot)
    void PyObject_GC_UnTrack(PyObject* value)
    int Py_tp_descr_set
    int Py_tp_new

ctypedef int (*set_slot)(object slot, object owner, object value) except -1
ctypedef object (*make_value)(PyObject* kind, object arguments, PyObject* named)

cdef enum:
    OFFSET = 0
    END = 1
    TYPE = 2
    HEADER = 4
    CONTENT = 6
    LENGTH = 7
    FOOTER = 8
    DAMAGE = 10
    COLUMNS = 16
    SLOTS = 9
    EMPTY_FOOTER = 12   # bytes of a footer without entries, and of the reverse pointer


def block_values(
    const uint8_t[::1] data not None, const int64_t[:, ::1] rows not None, type kind not None, tuple slots not None,
    str file not None, tuple types not None, object sound, dict no_footer not None, object parse, object other,
):
    cdef int64_t n = data.shape[0], i, head, size, before = -1, before_size = -1
    cdef void* setter
    cdef void* maker
    cdef set_slot put
    cdef make_value make
    cdef list out = []
    cdef object header = None, value
    cdef tuple none = ()
    if rows.shape[1] != COLUMNS or len(slots) != SLOTS:
        raise ValueError(f"rows have {COLUMNS} columns and blocks {SLOTS} slots")
    slot_kind = type(slots[0])
    setter = PyType_GetSlot(<PyTypeObject*>slot_kind, Py_tp_descr_set)
    maker = PyType_GetSlot(<PyTypeObject*>kind, Py_tp_new)
    for slot in slots:
        if type(slot) is not slot_kind:
            raise TypeError("slots are of one kind")
    if setter == NULL or maker == NULL:
        raise TypeError("no class with slots")
    put = <set_slot>setter
    make = <make_value>maker
    file_slot, offset_slot, size_slot, type_slot, header_slot, content_slot, length_slot, footer_slot, damage_slot = slots
    for i in range(rows.shape[0]):
        head = rows[i, HEADER]
        size = rows[i, CONTENT] - 8 - head
        if rows[i, DAMAGE] != 0 or rows[i, END] - rows[i, FOOTER] != EMPTY_FOOTER:
            out.append(other(i))
            continue
        if head < 0 or size < 4 or size > n - head or not 0 <= rows[i, TYPE] < len(types):
            raise ValueError("a row that is not of these bytes")
        if size != before_size or memcmp(&data[before], &data[head], <size_t>size) != 0:
            header = parse(PyBytes_FromStringAndSize(<const char*>&data[head], size))
            if header is None:
                before_size = -1
                out.append(other(i))
                continue
            before, before_size = head, size
        value = make(<PyObject*>kind, none, NULL)
        # It refers to numbers, texts and maps of these, so it is in no cycle that the collector must look for.
        PyObject_GC_UnTrack(<PyObject*>value)
        put(file_slot, value, file)
        put(offset_slot, value, rows[i, OFFSET])
        put(size_slot, value, rows[i, END] - rows[i, OFFSET])
        put(type_slot, value, types[rows[i, TYPE]])
        put(header_slot, value, header)
        put(content_slot, value, rows[i, CONTENT])
        put(length_slot, value, rows[i, LENGTH])
        put(footer_slot, value, no_footer)
        put(damage_slot, value, sound)
        out.append(value)
    return out
