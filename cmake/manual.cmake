# The manual page and the completions are what the program itself prints (phlox man, phlox completions SHELL), so they cannot
# differ from --help. Made at install time, by the program that is being installed.
function(phlox_install_manual target)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/manual)
  install(CODE "
    file(MAKE_DIRECTORY ${out})
    foreach(page \"man=phlox.1\" \"completions bash=phlox\" \"completions zsh=_phlox\" \"completions fish=phlox.fish\")
      string(REGEX MATCH \"^(.*)=(.*)$\" _ \"\${page}\")
      string(REPLACE \" \" \";\" words \"\${CMAKE_MATCH_1}\")
      execute_process(COMMAND $<TARGET_FILE:${target}> \${words} OUTPUT_FILE \"${out}/\${CMAKE_MATCH_2}\" COMMAND_ERROR_IS_FATAL ANY)
    endforeach()")
  install(FILES ${out}/phlox.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${out}/phlox DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${out}/_phlox DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${out}/phlox.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endfunction()
