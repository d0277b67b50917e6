program hello
  use iso_c_binding
  implicit none
  interface
    function part(x) bind(c)
      import c_int
      integer(c_int), value :: x
      integer(c_int) :: part
    end function
  end interface
  print '(I0)', part(42_c_int)
end program
