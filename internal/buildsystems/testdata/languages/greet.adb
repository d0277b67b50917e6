with Ada.Text_IO; with Interfaces.C;
procedure Greet is
   function Part (X : Interfaces.C.int) return Interfaces.C.int
     with Import, Convention => C, External_Name => "part";
   Stuck : exception;
   procedure Raise_It (N : Integer) is
   begin
      if N = 0 then raise Stuck; else Raise_It (N - 1); end if;
   end Raise_It;
begin
   Raise_It (3);
exception
   when Stuck => Ada.Text_IO.Put_Line (Interfaces.C.int'Image (Part (42)));
end Greet;
