# The component "python" is the wheel: the extension module, which is the compiler, its stub, and the runtime
# library with its C header go into the package, the relay command, which calls the module, beside the Python of the environment, its manual page and completions into share/.
include_guard(GLOBAL)

if(SKBUILD)
  set(relay_package_dir relay)
  set(relay_command_dir "${SKBUILD_SCRIPTS_DIR}")
  set(relay_share_dir "${SKBUILD_DATA_DIR}/share")
else()
  include(GNUInstallDirs)
  set(relay_package_dir "${CMAKE_INSTALL_LIBDIR}/python/relay")
  set(relay_command_dir "${CMAKE_INSTALL_BINDIR}")
  set(relay_share_dir "${CMAKE_INSTALL_DATADIR}")
endif()

if(TARGET relay)
  if(TARGET relay_command)
    install(TARGETS relay_command RUNTIME DESTINATION "${relay_command_dir}" COMPONENT python)
  else()
    install(TARGETS relay RUNTIME DESTINATION "${relay_command_dir}" COMPONENT python)
  endif()
  set(described "${PROJECT_BINARY_DIR}/src/cli/described")
  install(FILES "${described}/relay.1" DESTINATION "${relay_share_dir}/man/man1" COMPONENT python)
  install(FILES "${described}/relay.bash" DESTINATION "${relay_share_dir}/bash-completion/completions"
          RENAME relay COMPONENT python)
  install(FILES "${described}/relay.zsh" DESTINATION "${relay_share_dir}/zsh/site-functions"
          RENAME _relay COMPONENT python)
  install(FILES "${described}/relay.fish" DESTINATION "${relay_share_dir}/fish/vendor_completions.d"
          COMPONENT python)
endif()
if(TARGET relay_python)
  install(TARGETS relay_python LIBRARY DESTINATION "${relay_package_dir}" COMPONENT python)
  install(FILES "${RELAY_PYTHON_STUB}" DESTINATION "${relay_package_dir}" COMPONENT python)
endif()
if(TARGET relay_runtime_shared)
  install(TARGETS relay_runtime_shared LIBRARY DESTINATION "${relay_package_dir}/lib" COMPONENT python)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${relay_package_dir}/include" COMPONENT python)
endif()
